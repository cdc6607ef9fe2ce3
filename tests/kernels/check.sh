#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records on each kernel named (in-guest.sh), judges that here (verify.py), and closes with one line of counts. As many guests
# run side by side as there are processors.
# usage: check.sh KERNEL...
set -uo pipefail
. "$(dirname "$0")/../debian.sh"

mkdir -p "$cache/runs"
results=$(mktemp -d "$cache/runs/results.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$results"' EXIT

# One thread emulates all processors of a guest. With several, qemu now and then goes on with code that the kernel has just
# changed on another processor, as it does where tracepoints are switched on, and the kernel dies of that or stands still; and
# two guests with a thread each get more done than one with two.
check() { # KERNEL: lines of verdicts
    local dir=$results/$1 rc=0
    rm -rf "$dir"
    mkdir "$dir"
    "$tests/kernels/run.sh" -1 -t 900 -s "$dir" "$1" "PYTHONS='${PYTHONS:-}' sh tests/kernels/in-guest.sh $dir" || rc=$?
    case $rc in
    0) /usr/bin/python3 "$tests/kernels/verify.py" "$dir" || echo "FAILED kernel $1: verify.py's exit code $?" ;;
    77) echo "SKIPPED kernel $1: can't run here, the reason stands above" ;;
    *) echo "FAILED kernel $1: exit code $rc" ;;
    esac
}

for kernel; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    check "$kernel" >"$results/$kernel.verdicts" &
done
wait
# Beside another one an emulated machine may have no CPU for seconds, in which programs begin and end that it was to record.
for kernel; do
    grep -q '^FAILED' "$results/$kernel.verdicts" || continue
    say "kernel $kernel: once more, alone, since this was wrong:"
    grep '^FAILED' "$results/$kernel.verdicts" >&2
    check "$kernel" >"$results/$kernel.verdicts"
done

passed=0 failed=0 skipped=0
for kernel; do
    while read -r verdict rest; do
        case $verdict in
        ok) passed=$((passed + 1)) ;;
        FAILED) failed=$((failed + 1)) ;;
        SKIPPED) skipped=$((skipped + 1)) ;;
        '') continue ;;
        esac
        printf '  %-7s %s\n' "$verdict" "$rest"
    done <"$results/$kernel.verdicts"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
