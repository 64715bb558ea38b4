#!/usr/bin/env bash
# Installs Debian packages where that is possible; says how where it is not. What they bring along is not started.
#   scripts/install.sh PACKAGE…
set -euo pipefail
command -v apt-get >/dev/null 2>&1 || { echo "cannot install $*: this is not a Debian" >&2; exit 1; }
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "install with: apt-get install $*" >&2; exit 1; }
  as_root=(sudo -n)
fi
echo "==> installing $*" >&2
# Debian starts the services of what it installs, on their usual ports; tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get -qq update >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" >&2
