#!/usr/bin/env bash
# Runs a command in a temporary directory of its own and fails if a process
# that the command started is still there when it ends, pass or fail. Such
# processes are listed and ended.
#
#   tools/leave-nothing.sh COMMAND [ARG…]
#
# A process is recognised by the TMPDIR that it inherited, so a fleet that was
# started elsewhere, even from the same bin/, is left alone.
set -euo pipefail

scratch=$(mktemp -d "${TMPDIR:-/tmp}/namesake.XXXXXX")

# Prints the pid of each process that inherited our TMPDIR. The go command is
# passed over: it may leave a process of its own that uploads telemetry.
leftovers() {
  local environ pid exe
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
    [[ ${exe##*/} == go ]] && continue
    if grep -qszxF "TMPDIR=$scratch" "$environ" 2>/dev/null; then
      echo "$pid"
    fi
  done
}

# shellcheck disable=SC2317 # called by the trap
finish() {
  local status=$? pids deadline
  trap - EXIT INT TERM
  # A process that was just killed takes a moment to disappear.
  deadline=$((SECONDS + 3))
  pids=$(leftovers)
  while [[ -n $pids ]] && ((SECONDS < deadline)); do
    sleep 0.2
    pids=$(leftovers)
  done
  if [[ -n $pids ]]; then
    echo 'FAIL: these processes were left behind (and are ended now):' >&2
    # shellcheck disable=SC2086 # one word per pid
    ps -o pid,ppid,etime,args -p ${pids//$'\n'/,} | cut -c -200 >&2 || true
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    ((status != 0)) || status=1
  fi
  rm -rf --one-file-system "$scratch" || status=1
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

TMPDIR=$scratch "$@"
