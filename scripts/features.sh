#!/usr/bin/env bash
# Prints the cargo features of what is checked: every engine, those that are off by default, too, and TLS for Kafka where the
# headers of OpenSSL are installed. One list for all, because another one compiles everything again.
set -euo pipefail
features=curt/dynamodb
if pkg-config --exists openssl 2>/dev/null; then features+=,curt/kafka-tls; fi
echo "$features"
