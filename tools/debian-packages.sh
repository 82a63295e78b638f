#!/usr/bin/env bash
# Sees to the programs that the data plane of the sandbox calls. What is missing
# is installed when this is Debian and we are root; else the command is told.
# Without them, and without root, everything but the data plane works.
#
#   tools/debian-packages.sh
set -euo pipefail

# PROGRAM PACKAGE: nft is called by kube-proxy, the others stand behind images
# and commands of tests.
wanted='nft nftables
curl curl
socat socat
busybox busybox
ping iputils-ping
ip iproute2'

missing=()
while read -r program package; do
  command -v "$program" >/dev/null || missing+=("$package")
done <<<"$wanted"
((${#missing[@]})) || exit 0

command="apt-get install --yes --no-install-recommends ${missing[*]}"
if ((EUID == 0)) && command -v apt-get >/dev/null; then
  echo "installing for the data plane: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  $command >/dev/null || { apt-get update >/dev/null && $command >/dev/null; } || {
    echo "could not install them; by hand: $command" >&2
    exit 1
  }
else
  echo "the data plane of the sandbox needs programs that are missing here; as root: $command" >&2
fi
