#!/usr/bin/env bash
# Runs a command and fails if it changed, made or removed a file that git does
# not ignore. The tree may hold changes before; only what the command did counts.
#
#   tools/change-nothing.sh COMMAND [ARG…]
set -euo pipefail

index=$(mktemp)
trap 'rm -f "$index"' EXIT

# Prints the id of a git tree that holds the working tree as it is now, without
# touching the index that the developer works with.
snapshot() {
  cp "$(git rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
  GIT_INDEX_FILE=$index git add --all .
  GIT_INDEX_FILE=$index git write-tree
}

cd "$(git rev-parse --show-toplevel)"
before=$(snapshot)
"$@"
after=$(snapshot)

if [[ $before != "$after" ]]; then
  echo
  echo 'FAIL: the committed files are not what the generators make. These changed just now:'
  git --no-pager diff --stat "$before" "$after"
  git --no-pager diff "$before" "$after" | head -n 100
  echo "Look at the changes, then commit them: '$*' has already made them."
  exit 1
fi
