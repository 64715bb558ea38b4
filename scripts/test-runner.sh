#!/usr/bin/env bash
# Runs one test binary, as cargo's runner: ends it when it hangs, and fails when something that it started is left behind.
#   scripts/test-runner.sh BINARY [ARGUMENT…]
# TEST_TIME_MAX: seconds that the binary may take. TEST_GRACE: seconds that watchdogs have to clean up after it.
set -uo pipefail
# Tests wait more than they work: one more at a time than there are cores. Not where tests start ensembles of ZooKeeper:
# the server that the others share answers nobody beside two of them.
case $PWD in */curt-zookeeper) more=0 ;; *) more=1 ;; esac
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + more))}
limit=${TEST_TIME_MAX:-2700}
grace=${TEST_GRACE:-30}
name=$(basename "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/curt-test.XXXXXX")
chmod 1777 "$folder" # as the system's own: engines run under accounts of their own
run=$name.$$.$RANDOM

say() { echo "test-runner: $name: $1" >&2; }

# The test threads have the tests' names, the first 15 letters of them.
end_when_late() {
  local second binary me=$BASHPID
  for ((second = 0; second < limit; second++)); do sleep 1 >/dev/null 2>&1; done
  for binary in $(cat "/proc/$$/task/$$/children"); do [ "$binary" = "$me" ] || break; done
  say "not done after $limit s, ended. Its threads were:"
  cat "/proc/$binary/task/"*/comm 2>/dev/null | sort | uniq -c | sort -rn | sed 's/^/    /' >&2
  kill -KILL "$binary"
}

# What was started by the tests, however it was detached from them: the environment is inherited.
left_processes() { grep -slzxF "TEST_RUN=$run" /proc/[0-9]*/environ | cut -d/ -f3; }
left_mounts() { awk -v folder="$folder/" 'index($2, folder) == 1 { print $2 }' /proc/mounts; }

end_when_late &
timer=$!
TEST_RUN=$run TMPDIR=$folder "$@"
status=$?
kill "$timer" 2>/dev/null
wait "$timer" 2>/dev/null

for ((look = 0; look < grace * 10; look++)); do
  [ -n "$(left_processes)$(left_mounts)" ] || break
  sleep 0.1
done
for process in $(left_processes); do
  say "left behind: process $process: $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null)"
  kill -KILL "$process" 2>/dev/null
  [ "$status" -ne 0 ] || status=125
done
while read -r place; do
  say "left behind: mounted $place"
  umount -l "$place"
  [ "$status" -ne 0 ] || status=125
done < <(left_mounts)
rm -rf "$folder"
exit "$status"
