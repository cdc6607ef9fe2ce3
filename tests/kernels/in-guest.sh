#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside the guest, in the checkout: what pycap must do on every kernel. One line
# a test, "ok NAME", "FAILED NAME: why" or "SKIPPED NAME: why". Anything that explains a failure
# goes to stderr.
# PYTHONS: interpreters to record, by default Debian's own.
set -u
pycap=${PYCAP:-build/pycap}
pysym=${PYSYM:-build/pysym}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
release=$(uname -r)

if "$pycap" info >"$dir/info" 2>&1 && grep -q '^sampling *yes' "$dir/info"; then
    echo "ok info ($release)"
else
    echo "FAILED info ($release): it does not say that sampling works"
    cat "$dir/info" >&2
fi

# Emulation is slow and its first samples fall into the import of modules, so most, not all,
# of the weight has to carry the chain. Whole chains only: a frame missing in between fails.
chain='outer \(work\.py:[0-9]+\);([^;]*;)*middle \(work\.py:[0-9]+\);([^;]*;)*[^;]*<lambda> \(work\.py:[0-9]+\);([^;]*;)*burn \(work\.py:[0-9]+\)'

check() { # INTERPRETER
    name="record $1 ($release)"
    trace=$dir/trace.bin
    rm -f "$trace"
    if ! [ -x "$1" ]; then
        echo "SKIPPED $name: no such interpreter"
        return
    fi
    # The end of the command ends the recording; --duration is only a guard.
    "$pycap" record -o "$trace" -F 99 -d 120 -- "$1" tests/kernels/work.py 5 >"$dir/record" 2>&1
    rc=$?
    if [ $rc != 0 ]; then
        echo "FAILED $name: pycap's exit code $rc"
        cat "$dir/record" >&2
        return
    fi
    if ! "$pysym" "$trace" --format folded -o "$dir/folded" 2>"$dir/pysym"; then
        echo "FAILED $name: pysym failed"
        cat "$dir/pysym" >&2
        return
    fi
    total=$(awk '{ total += $NF } END { print total + 0 }' "$dir/folded")
    good=$(grep -E "$chain" "$dir/folded" | awk '{ good += $NF } END { print good + 0 }')
    if [ "$total" -ge 50 ] && [ $((good * 100)) -ge $((total * 80)) ]; then
        echo "ok $name: $good of $total samples carry the chain"
    else
        echo "FAILED $name: $good of $total samples carry the chain (wanted: 80 % of at least 50)"
        { cat "$dir/record"; head -n 20 "$dir/folded"; } >&2
    fi
}

for python in ${PYTHONS:-/usr/bin/python3}; do
    check "$python"
done
