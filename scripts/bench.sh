#!/usr/bin/env bash
# Measures this build against nginx and against SQLite alone in one run, and writes bench/RESULTS.md.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh nginx "the web server to compare with" nginx-light || echo "nginx is missing: its comparisons are skipped" >&2
scripts/need.sh taskset "util-linux, to pin processes to cores" util-linux
cargo build --release --locked -p curt -p curt-bench
# Fails on a broken promise, and when none could be judged.
exec target/release/curt-bench "$@"
