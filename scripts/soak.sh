#!/usr/bin/env bash
# The tests of `make test` at full length: millions of keys and links, many kills. Takes about an hour on two cores.
#   scripts/soak.sh [TEST-NAME-PART]
set -euo pipefail
cd "$(dirname "$0")/.."
export CURT_TEST_LENGTH=full
echo "==> soak: optimised build, full lengths"
exec cargo test --locked --profile release-check -p curt -p curt-adapters -p curt-clicks --test it --test click_scale --test spool -- --nocapture --test-threads=1 "$@"
