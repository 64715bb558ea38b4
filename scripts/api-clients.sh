#!/usr/bin/env bash
# Generates a Python and a TypeScript client from the OpenAPI document of a real server, and has each make, list, edit and
# delete every kind of link. The generators come from PyPI and npm into .cache; without them the step is skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")/.."

python_version=0.29.1
typescript_version=7.13.0
fetch_version=0.17.0
cache=$PWD/.cache/api-clients-$python_version-$typescript_version

skip() { echo "SKIPPED api-clients ($1): $2" | tee -a "${SKIPPED_TESTS_LIST:-/dev/null}" >&2 || true; }

install_python() {
  [ -x "$cache/python/bin/python" ] && return
  command -v python3 >/dev/null || { skip python "python3 is missing"; return 1; }
  rm -rf "$cache/python"
  python3 -m venv "$cache/python" >/dev/null 2>&1 ||
    { skip python "python3 cannot make virtual environments (Debian: apt-get install python3-venv)"; return 1; }
  echo "==> installing openapi-python-client $python_version"
  "$cache/python/bin/pip" install -q "openapi-python-client==$python_version" openapi-spec-validator ||
    { rm -rf "$cache/python"; skip python "pip install openapi-python-client==$python_version failed"; return 1; }
}

install_typescript() {
  [ -d "$cache/node/node_modules/openapi-fetch" ] && return
  command -v node >/dev/null && command -v npm >/dev/null || { skip typescript "node or npm is missing"; return 1; }
  echo "==> installing openapi-typescript $typescript_version"
  mkdir -p "$cache/node"
  npm install --silent --no-audit --no-fund --prefix "$cache/node" "openapi-typescript@$typescript_version" \
    "openapi-fetch@$fetch_version" typescript@5 ||
    { rm -rf "$cache/node"; skip typescript "npm install openapi-typescript@$typescript_version failed"; return 1; }
}

mkdir -p "$cache"
python=yes; install_python || python=
typescript=yes; install_typescript || typescript=
[ -n "$python$typescript" ] || exit 0

# The binary of the tests: alone it would have other features, and most of what it needs would be compiled again.
cargo test -q --locked --features "$(scripts/features.sh)" --workspace --test it --no-run
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
settings=(--set "data_dir=$work/data" --set server.listen=127.0.0.1:0 --set server.admin_listen=127.0.0.1:0 --set log.level=warn)
settings+=(--set accounts.password_memory=64KiB --set accounts.password_passes=1)
target/debug/curt serve "${settings[@]}" --ready-file "$work/ready" >"$work/out" 2>&1 &
server=$!
for _ in $(seq 200); do [ -s "$work/ready" ] && break; kill -0 "$server" 2>/dev/null || { cat "$work/out" >&2; exit 1; }; sleep 0.05; done
[ -s "$work/ready" ] || { cat "$work/out" >&2; echo "the server was not ready in 10 s" >&2; exit 1; }
address=http://$(sed -n 's/^http=//p' "$work/ready")
CURT_API_KEY=$(target/debug/curt api-key "${settings[@]}" add api-clients)
export CURT_API_KEY CURT_URL=$address
curl -sSf "$address/api/openapi.json" -o "$work/openapi.json"

if [ -n "$python" ]; then
  echo "==> a generated Python client"
  "$cache/python/bin/python" -m openapi_spec_validator "$work/openapi.json"
  # It calls a formatter that is installed beside it.
  (cd "$work" && PATH=$cache/python/bin:$PATH openapi-python-client generate --path openapi.json --output-path curt_client \
    --meta none --fail-on-warning)
  PYTHONPATH=$work "$cache/python/bin/python" scripts/api-clients/client.py
fi
if [ -n "$typescript" ]; then
  echo "==> a generated TypeScript client"
  mkdir -p "$work/ts" && ln -s "$cache/node/node_modules" "$work/ts/node_modules"
  cp scripts/api-clients/client.ts "$work/ts/"
  echo '{"type": "module"}' >"$work/ts/package.json"
  "$cache/node/node_modules/.bin/openapi-typescript" "$work/openapi.json" -o "$work/ts/schema.d.ts"
  (cd "$work/ts" && node_modules/.bin/tsc --strict --module nodenext --moduleResolution nodenext --target es2022 \
    --skipLibCheck client.ts && node client.js)
fi
