#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in-guest.sh on each kernel named and closes with one line of counts.
# usage: check.sh KERNEL...
set -uo pipefail
. "$(dirname "$0")/../debian.sh"

passed=0 failed=0 skipped=0
for kernel; do
    lines=$("$tests/kernels/run.sh" -t 900 "$kernel" \
        "PYTHONS='${PYTHONS:-}' sh tests/kernels/in-guest.sh") && rc=0 || rc=$?
    case $rc in
    0) ;;
    77) lines="SKIPPED kernel $kernel: can't run here, the reason stands above" ;;
    *) lines="$lines
FAILED kernel $kernel: exit code $rc" ;;
    esac
    while read -r verdict rest; do
        case $verdict in
        ok) passed=$((passed + 1)) ;;
        FAILED) failed=$((failed + 1)) ;;
        SKIPPED) skipped=$((skipped + 1)) ;;
        '') continue ;;
        esac
        printf '  %-7s %s\n' "$verdict" "$rest"
    done <<<"$lines"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
