#!/usr/bin/env bash
# Fails with the name of a missing program. With a third argument, a Debian package, it is installed where that is possible.
#   scripts/need.sh PROGRAM "what it is" [DEBIAN-PACKAGE]
set -euo pipefail
program=$1 what=$2 package=${3:-}
command -v "$program" >/dev/null 2>&1 && exit 0
if [ -n "$package" ] && command -v apt-get >/dev/null 2>&1; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 && as_root=(sudo -n) || { echo "missing: $program: $what; install it with: apt-get install $package" >&2; exit 1; }
  fi
  echo "==> installing $package" >&2
  "${as_root[@]}" apt-get -qq update >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$package" >&2
  command -v "$program" >/dev/null 2>&1 && exit 0
fi
echo "missing: $program: $what" >&2
exit 1
