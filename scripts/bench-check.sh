#!/usr/bin/env bash
# Judges every time that is promised, and fails when one is broken: the tests that measure, one after the other, and the
# comparisons of `make bench`. For a machine that does nothing else.
#   scripts/bench-check.sh [TEST-NAME-PART…]
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
  set -- cpu_second expiry faults:: refills report_scale revocation scanning shutdown slow_clients ten_times timeouts timing::
  compare=yes
fi
scripts/soak.sh "$@"
if [ -n "${compare:-}" ]; then scripts/bench.sh; fi
