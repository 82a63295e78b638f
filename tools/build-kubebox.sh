#!/usr/bin/env bash
# Compiles the five Kubernetes programs into one, with progress: the first
# compile takes minutes, and silence looks like a hang.
#
#   tools/build-kubebox.sh OUTPUT LDFLAGS
set -euo pipefail
output=$1
ldflags=$2
cd "$(dirname "$0")/../sandbox"

total=0
step=100
ending=$'\n'
if [[ -t 1 ]]; then
  step=10
  ending=$'\r'
fi

# go build -v names a package as it compiles it and is silent about cached
# ones, so a warm build prints nothing here. All other lines are passed on.
show_progress() {
  local line compiled=0 downloaded=0
  while IFS= read -r line; do
    case $line in
      'go: downloading '*)
        downloaded=$((downloaded + 1))
        if ((downloaded % step == 1)); then
          printf 'downloading modules: %d%s' "$downloaded" "$ending"
        fi
        ;;
      *[[:space:]:]*)
        printf '%s\n' "$line"
        ;;
      *)
        compiled=$((compiled + 1))
        if ((compiled == step)); then
          printf 'compiling Kubernetes into bin/kubebox: about six minutes on two cores the first time\n'
        fi
        if ((compiled % step == 0)); then
          printf 'compiled %d of at most %d packages%s' "$compiled" "$total" "$ending"
        fi
        ;;
    esac
  done
  if ((compiled >= step)); then
    printf 'compiled %d packages                          \n' "$compiled"
  elif ((downloaded > 0)); then
    printf 'downloaded %d modules    \n' "$downloaded"
  fi
}

if [[ ! -e $output ]]; then
  echo 'building bin/kubebox, which holds Kubernetes: about six minutes on two cores when nothing is cached'
fi
# Listing the packages downloads their modules first, which has its own progress.
total=$({ go list -deps ./cmd/kubebox 2>&1 >&3 | show_progress >&2; } 3>&1 | wc -l)
go build -v -ldflags "$ldflags" -o "$output" ./cmd/kubebox 2>&1 | show_progress
