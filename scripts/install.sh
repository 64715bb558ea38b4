#!/usr/bin/env bash
# Installs a Debian package where that is possible; says how where it is not.
#   scripts/install.sh PACKAGE
set -euo pipefail
package=$1
command -v apt-get >/dev/null 2>&1 || { echo "cannot install $package: this is not a Debian" >&2; exit 1; }
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "install it with: apt-get install $package" >&2; exit 1; }
  as_root=(sudo -n)
fi
echo "==> installing $package" >&2
"${as_root[@]}" apt-get -qq update >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$package" >&2
