#!/usr/bin/env bash
# Brings the real engines that tests run against: Debian packages, and into .cache/engines what Debian does not have.
# Never fails: the tests of an engine that cannot be had are skipped, and say so.
set -uo pipefail
cd "$(dirname "$0")/.."

cache=$PWD/.cache/engines
jars=(kafka cassandra dynamodb hdfs)
# Longest time for fetching or building one of them: a slow line or machine costs tests that are skipped, not the run.
step_max=5m
minio_version=v0.0.0-20260212201848-7aac2a2c5b7c # of 2026-02-12: the project has no others

axe_version=4.14.0 # checks pages for accessibility

# Servers are in folders that not everybody has on their path.
have() { PATH=$PATH:/usr/sbin:/usr/local/sbin command -v "$1" >/dev/null 2>&1; }
have_postgres() { have postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }
have_redis() { have redis-server && have redis-cli; }
have_openssl_headers() { have pkg-config && pkg-config --exists openssl; }
have_zookeeper() { have java && [ -e /usr/share/java/zookeeper.jar ]; }
have_jars() { cmp -s "scripts/engines/$1/pom.xml" "$cache/$1/pom.xml"; }
have_all_jars() { for engine in "${jars[@]}"; do have_jars "$engine" || return; done; }
have_minio() { [ "$(cat "$cache/minio/version" 2>/dev/null)" = "$minio_version" ]; }

have_axe() { [ "$(cat "$cache/axe/version" 2>/dev/null)" = "$axe_version" ]; }

# What it is | how it is seen | the packages that bring it. Java comes with ZooKeeper.
packaged=(
  'PostgreSQL|have_postgres|postgresql'
  'Redis|have_redis|redis-server redis-tools'
  'ZooKeeper|have_zookeeper|zookeeper'
  'MariaDB|have mariadbd|mariadb-server'
  'Memcached|have memcached|memcached'
  'kcat|have kcat|kcat'
  'HAProxy|have haproxy|haproxy'
  'nginx|have nginx|nginx'
  'Caddy|have caddy|caddy'
  'Chromium|have chromium && have chromedriver|chromium chromium-driver'
  'curl|have curl|curl'
  'systemd-analyze|have systemd-analyze|systemd'
  'openssl|have openssl|openssl'
  'headers of OpenSSL|have_openssl_headers|libssl-dev pkg-config'
  'zbarimg|have zbarimg|zbar-tools'
  'Maven|have_all_jars || have mvn|maven'
)

# Calls a function with the name and the packages of everything that is not there.
for_missing() {
  local line name seen packages
  for line in "${packaged[@]}"; do
    seen=${line#*|} name=${line%%|*} packages=${line##*|}
    eval "${seen%|*}" || "$1" "$name" "$packages"
  done
}
list_packages() { echo "$2"; }
install_one() { read -ra words <<<"$2"; scripts/install.sh "${words[@]}"; }
say_missing() { echo "MISSING $1: what needs it will be skipped (install it with: $2)" >&2; }
say_missing_package() { say_missing "$1" "apt-get install $2"; }

install_packages() {
  local packages
  read -ra packages <<<"$(for_missing list_packages | tr '\n' ' ')"
  [ ${#packages[@]} = 0 ] && return
  # All at once is quickest; one that this Debian does not have must not keep the others away.
  scripts/install.sh "${packages[@]}" || for_missing install_one
}

in_time() {
  timeout --foreground "$step_max" "$@"
  local status=$?
  [ $status = 124 ] && echo "    stopped after $step_max; what is done is kept: make engines goes on from there" >&2
  return $status
}

fetch_jars() {
  local engine=$1 pom=scripts/engines/$1/pom.xml new=$cache/$1.new
  have_jars "$engine" && return
  echo "==> fetching $engine into .cache/engines"
  rm -rf "$new"
  in_time mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$new/lib" &&
    cp "$pom" "$new/" && rm -rf "${cache:?}/$engine" && mv "$new" "$cache/$engine"
}

# In no registry but as source: it is built where there is Go to do it, which takes three minutes on two cores.
build_minio() {
  local new=$cache/minio.new
  have_minio && return
  have go || return
  echo "==> building MinIO into .cache/engines (some minutes, once)"
  rm -rf "$new"
  GOBIN=$new in_time go install "github.com/minio/minio@$minio_version" &&
    echo "$minio_version" >"$new/version" && rm -rf "$cache/minio" && mv "$new" "$cache/minio"
}

fetch_axe() {
  local new=$cache/axe.new
  have_axe && return
  have npm || return
  echo "==> fetching axe-core into .cache/engines"
  rm -rf "$new" && mkdir -p "$new"
  in_time npm install --silent --no-audit --no-fund --prefix "$new" "axe-core@$axe_version" &&
    cp "$new/node_modules/axe-core/axe.min.js" "$new/" && echo "$axe_version" >"$new/version" &&
    rm -rf "$cache/axe" && mv "$new" "$cache/axe"
}

mkdir -p "$cache"
exec 9>"$cache/lock" && flock 9 # two at once would fetch into the same folder
install_packages
for_missing say_missing_package
for engine in "${jars[@]}"; do
  fetch_jars "$engine" || say_missing "$engine" "apt-get install maven, then make engines"
done
fetch_axe || say_missing axe-core "npm, then make engines"
build_minio || say_missing MinIO "Go, then make engines"
exit 0
