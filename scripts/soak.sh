#!/usr/bin/env bash
# The tests of `make test` at full length: millions of keys and links, many kills. Times are judged, one test after the
# other, then a stream of clicks for five minutes, and at the end the comparisons of `make bench`: all of
# `make bench-check`. Takes more than an hour on two cores.
#   scripts/soak.sh [TEST-NAME-PART]
set -euo pipefail
cd "$(dirname "$0")/.."
export CURT_TEST_LENGTH=full
export TEST_TIME_MAX=${TEST_TIME_MAX:-21600}
runner="target.'cfg(all())'.runner=['$PWD/scripts/test-runner.sh']"
echo "==> soak: optimised build, full lengths"
packages=(curt curt-cassandra curt-clicks curt-copy curt-dynamodb curt-http curt-kafka curt-mysql curt-objects curt-postgres curt-redis curt-shards curt-spool curt-sqlite curt-zookeeper)
tests=(it aggregate_scale server)
if [ $# = 0 ]; then
  echo "==> soak: parsers of outside bytes, a minute each with a new seed"
  cargo test --locked --config "$runner" --profile release-check --features "$(scripts/features.sh)" --workspace --lib --bins -- --nocapture --test-threads=1 mutated_
fi
cargo test --locked --config "$runner" --profile release-check --features "$(scripts/features.sh)" "${packages[@]/#/--package=}" "${tests[@]/#/--test=}" -- --nocapture --test-threads=1 "$@"
if [ $# = 0 ]; then
  echo "==> soak: 60,000 clicks a second for five minutes, default settings"
  cargo build --release --locked -p curt -p curt-bench
  target/release/curt-bench sustained --rate 60000 --seconds 300
  scripts/bench.sh
fi
