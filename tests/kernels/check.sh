#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records on each kernel named (in-guest.sh), judges that here (verify.py), and closes with one line of counts.
# usage: check.sh KERNEL...
set -uo pipefail
. "$(dirname "$0")/../debian.sh"

passed=0 failed=0 skipped=0
mkdir -p "$cache/runs"
results=$(mktemp -d "$cache/runs/results.XXXXXX")
trap 'rm -rf "$results"' EXIT

guest() { # KERNEL DIR SECONDS [OPTION]: exits as run.sh
    rm -rf "$2"
    mkdir "$2"
    "$tests/kernels/run.sh" ${4:+"$4"} -t "$3" -s "$2" "$1" "PYTHONS='${PYTHONS:-}' sh tests/kernels/in-guest.sh $2"
}

for kernel; do
    dir=$results/$kernel
    guest "$kernel" "$dir" 400 && rc=0 || rc=$?
    # Now and then qemu's emulation goes on with code that the kernel has just changed on another processor, as it does
    # where tracepoints are switched on, and the kernel dies of that or stands still with a processor that is busy for ever. It
    # cannot where one thread emulates all processors: one that dies there has another reason.
    if [ $rc = 126 ] || [ $rc = 124 ]; then
        say "kernel $kernel: it panicked or stood still, once more"
        guest "$kernel" "$dir" 1200 -1 && rc=0 || rc=$?
    fi
    case $rc in
    0) lines=$(/usr/bin/python3 "$tests/kernels/verify.py" "$dir") || lines="$lines
FAILED kernel $kernel: verify.py's exit code $?" ;;
    77) lines="SKIPPED kernel $kernel: can't run here, the reason stands above" ;;
    *) lines="FAILED kernel $kernel: exit code $rc" ;;
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
