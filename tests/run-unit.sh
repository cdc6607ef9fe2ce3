#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests named, as many at a time as there are processors, and prints one closing line with the counts.
# usage: run-unit.sh LOGDIR TEST...
# What TEST printed is in LOGDIR/TEST.log, its exit code in LOGDIR/TEST.rc.
set -u
logs=$1
shift
for test; do
    rm -f "$logs/$(basename "$test").rc"
done
# Many of them wait most of their time.
[ $# = 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" sh -c '
    log=$1/$(basename "$2")
    timeout -k 5 300 "$2" >"$log.log" 2>&1 </dev/null
    echo $? >"$log.rc"' sh "$logs"

passed=0 failed=0 skipped=0
for test; do
    name=$(basename "$test")
    rc=$(cat "$logs/$name.rc") status=ok
    if [ "${rc:-1}" != 0 ]; then
        status=FAILED
        [ "$rc" != 124 ] || echo "$name: stopped after 300 s" >>"$logs/$name.log"
        cat "$logs/$name.log" >&2
    fi
    p=$(grep -c '^\[       OK \]' "$logs/$name.log")
    s=$(grep -c '^\[  SKIPPED \] [^0-9]' "$logs/$name.log")
    f=$(grep '^\[  FAILED  \] [a-z]' "$logs/$name.log" | sort -u | wc -l)
    [ $status = ok ] || [ "$f" -gt 0 ] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '  %-7s %s (%d)\n' $status "$name" "$p"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
