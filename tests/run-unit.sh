#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests named and prints one closing line with the counts.
# usage: run-unit.sh LOGDIR TEST...
set -u
logs=$1
shift
passed=0 failed=0 skipped=0
for test; do
    name=$(basename "$test")
    if timeout -k 5 300 "$test" >"$logs/$name.log" 2>&1 </dev/null; then
        status=ok
    else
        rc=$? status=FAILED
        [ $rc != 124 ] || echo "$name: stopped after 300 s" >>"$logs/$name.log"
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
