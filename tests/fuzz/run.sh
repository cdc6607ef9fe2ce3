#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets, as many at a time as there are processors, and closes with the counts of all.
# usage: run.sh BUILDDIR SECONDS TARGET...
# What fails leaves its input in BUILDDIR/TARGET-crash-*; BUILDDIR/TARGET FILE repeats it.
set -u
build=$1 seconds=$2
shift 2
passed=0 failed=0

for target; do
    rm -f "$build/$target.rc"
done
[ $# = 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" sh -c '
    build=$1 seconds=$2 target=$3
    # A trace with records of every kind is longer than what a parser needs to see.
    case $target in
    fuzz_pysym) longest=200000 ;;
    *) longest=16384 ;;
    esac
    corpus=$build/corpus/$target
    mkdir -p "$corpus"
    ASAN_OPTIONS=allocator_may_return_null=1 "$build/$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 \
        -max_len=$longest -use_value_profile=1 -print_final_stats=1 -artifact_prefix="$build/$target-" "$corpus" \
        "$build/seeds/$target" >"$build/$target.log" 2>&1 </dev/null
    echo $? >"$build/$target.rc"' sh "$build" "$seconds"

for target; do
    log=$build/$target.log
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    if [ "$(cat "$build/$target.rc")" = 0 ] && [ "${executions:-0}" -gt 0 ]; then
        passed=$((passed + 1)) status=ok
    else
        failed=$((failed + 1)) status=FAILED
        tail -n 40 "$log" >&2
    fi
    printf '  %-7s %s: %s executions, %s edges covered, %s inputs kept\n' $status "$target" "${executions:-0}" \
        "${covered:-0}" "$(find "$build/corpus/$target" -type f | wc -l)"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
