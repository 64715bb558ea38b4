#!/usr/bin/env bash
# Fetches a list of networks and their countries, public domain (CC0), for the setting clicks.countries.
#   scripts/geoip.sh [FILE]      FILE is data/countries.mmdb by default
set -euo pipefail
cd "$(dirname "$0")/.."

package=@ip-location-db/geo-whois-asn-country-mmdb
inside=package/geo-whois-asn-country.mmdb
file=${1:-data/countries.mmdb}

scripts/need.sh npm "npm, which fetches the list" npm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "==> fetching $package"
npm pack --silent --pack-destination "$work" "$package" >/dev/null
tar -xzf "$work"/*.tgz -C "$work" "$inside"
mkdir -p "$(dirname "$file")"
# Next to its place and then renamed: a server that starts meanwhile sees the old list or the new one.
mv "$work/$inside" "$file.new"
mv "$file.new" "$file"
echo "==> $file ($(wc -c <"$file") bytes); use it with: --set clicks.countries=$(basename "$file")"
