#!/usr/bin/env bash
# Runs schemathesis over the OpenAPI document of a real server: no 5xx, no undocumented status, no schema violation.
# Schemathesis comes from PyPI into a virtual environment under .cache; without it the step is skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.32.5
venv=.cache/schemathesis-$version
examples=${API_FUZZ_EXAMPLES:-50}

skip() { echo "SKIPPED api-fuzz: $1" | tee -a "${SKIPPED_TESTS_LIST:-/dev/null}" >&2 || true; exit 0; }
make_venv() { rm -rf "$venv.new"; python3 -m venv "$venv.new" >/dev/null 2>&1; }

if [ ! -x "$venv/bin/schemathesis" ]; then
  scripts/need.sh python3 "Python 3.10 or newer" python3 || skip "python3 is missing"
  echo "==> installing schemathesis $version into $venv"
  make_venv || { scripts/install.sh python3-venv && make_venv; } ||
    skip "python3 cannot make virtual environments (Debian: apt-get install python3-venv)"
  "$venv.new/bin/pip" install -q "schemathesis==$version" || { rm -rf "$venv.new"; skip "schemathesis $version could not be installed (pip install schemathesis==$version)"; }
  rm -rf "$venv" && mv "$venv.new" "$venv"
  # A moved environment keeps absolute paths in its scripts; running the module avoids them.
fi

# The binary of the tests: alone it would have other features, and most of what it needs would be compiled again.
cargo test -q --locked --features "$(scripts/features.sh)" --workspace --test it --no-run
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
curt() { target/debug/curt "$@"; }
settings=(--set "data_dir=$work/data" --set server.listen=127.0.0.1:0 --set server.admin_listen=127.0.0.1:0 --set log.level=warn)
# Behind a limit there would be nothing but 429 to see. Cheap passwords, because thousands are tried.
for limit in creations_per_address misses_per_address sign_ins_per_address sign_ins_per_account link_passwords_per_address link_passwords_per_link; do
  settings+=(--set "limits.$limit=")
done
settings+=(--set accounts.sign_up=open --set accounts.password_memory=64KiB --set accounts.password_passes=1)
# Not through the function: its process would be a shell, and the server would outlive the signal to it.
target/debug/curt serve "${settings[@]}" --ready-file "$work/ready" >"$work/out" 2>&1 &
server=$!
for _ in $(seq 200); do [ -s "$work/ready" ] && break; kill -0 "$server" 2>/dev/null || { cat "$work/out" >&2; exit 1; }; sleep 0.05; done
[ -s "$work/ready" ] || { cat "$work/out" >&2; echo "the server was not ready in 10 s" >&2; exit 1; }
address=$(sed -n 's/^http=//p' "$work/ready")
key=$(curt api-key "${settings[@]}" add api-fuzz)
# Somebody whom an administrator can change without getting into their own way.
curt user "${settings[@]}" add other@example.com >/dev/null
user=$(curt user "${settings[@]}" list --json | python3 -c 'import json, sys; print(next(u["id"] for u in json.load(sys.stdin) if u["email"] == "other@example.com"))')

echo "==> schemathesis over http://$address/api/openapi.json"
CURT_API_KEY=$key CURT_OTHER_USER=$user "$venv/bin/python" -m schemathesis.cli --config-file crates/curt-http/tests/schemathesis.toml \
  run "http://$address/api/openapi.json" --max-examples "$examples" --seed 1 \
  --generation-database none --no-color
