#!/usr/bin/env bash
# Fails with the name of a missing program. With a third argument, a Debian package, it is installed first.
#   scripts/need.sh PROGRAM "what it is" [DEBIAN-PACKAGE]
set -euo pipefail
program=$1 what=$2 package=${3:-}
have() { command -v "$program" >/dev/null 2>&1; }
have && exit 0
if [ -n "$package" ] && "$(dirname "$0")/install.sh" "$package" && have; then exit 0; fi
echo "missing: $program: $what" >&2
exit 1
