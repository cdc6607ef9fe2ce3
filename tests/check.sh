#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every suite (unit; golden and live by pytest) and closes with the counts of all.
# usage: check.sh BUILDDIR UNITTEST...
# PYCAP, PYSYM: the programs tested, by default those of BUILDDIR. PYTHONS: interpreters
# of the live tests. PYTEST_ADDOPTS as pytest has it.
set -u
build=$1
shift
cd "$(dirname "$0")/.." || exit 1
export PYCAP="${PYCAP:-$PWD/$build/pycap}" PYSYM="${PYSYM:-$PWD/$build/pysym}"
# Tests that build something themselves build it plainly, also when make was told otherwise.
unset SANITIZE MAKEFLAGS MAKEOVERRIDES MFLAGS
logs=$build/tests
mkdir -p "$logs"
passed=0 failed=0 skipped=0

add() { # PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# Golden and live tests run as two processes side by side, one for each of two cores: BESIDE holds those that compare
# stack by stack, or need no sampler; what is marked alone comes when both have ended.
BESIDE="pysym consumers traces bench matrix unwind_check ways privacy proc privileges lines names jit"

# suite NAME PYTEST-ARGUMENT...: runs it into NAME.out; what it counts is in NAME.xml, pytest's exit code in NAME.status.
suite() {
    name=$1
    shift
    rm -f "$logs/$name.xml" "$logs/$name.status"
    ${PYTHON:-/usr/bin/python3} -m pytest -q -rs --tb=short --durations=15 -p no:cacheprovider --junit-xml="$logs/$name.xml" \
        "$@" >"$logs/$name.out" 2>&1 </dev/null
    echo $? >"$logs/$name.status"
}

# Shows what a suite said, and adds its counts. pytest's own failures (a test file that doesn't load) are errors in the
# report; no report is one failure.
end_suite() {
    echo "$2"
    cat "$logs/$1.out"
    status=$(cat "$logs/$1.status" 2>/dev/null || echo none)
    counts=$(sed -n 's/.*<testsuite [^>]*errors="\([0-9]*\)" failures="\([0-9]*\)" skipped="\([0-9]*\)" tests="\([0-9]*\)".*/\1 \2 \3 \4/p' "$logs/$1.xml" 2>/dev/null | head -n 1)
    # 5: no test was chosen
    if [ -n "$counts" ] && { [ "$status" = 0 ] || [ "$status" = 1 ] || [ "$status" = 5 ]; }; then
        # shellcheck disable=SC2086
        set -- $counts
        add $(($4 - $1 - $2 - $3)) $(($1 + $2)) "$3"
    else
        echo "pytest's exit code is $status"
        add 0 1 0
    fi
}

beside="" apart=""
for name in $BESIDE; do
    beside="$beside tests/integration/test_$name.py"
    apart="$apart --ignore=tests/integration/test_$name.py"
done
# shellcheck disable=SC2086
suite beside -m "not alone" $beside &
beside_pid=$!
trap 'kill $beside_pid 2>/dev/null' EXIT INT TERM

echo "unit tests:"
sh tests/run-unit.sh "$logs" "$@" >"$logs/unit.out"
cat "$logs/unit.out"
counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$logs/unit.out" | tail -n 1)
# shellcheck disable=SC2086
add ${counts:-0 1 0}

if sh tests/check-format-doc.sh; then
    echo "docs/trace-format.md has every record, field and loss"
    add 1 0 0
else
    add 0 1 0
fi

if sh tests/check-manual.sh "$PYCAP" "$PYSYM"; then
    echo "the manual pages have every option, and none that does not exist"
    add 1 0 0
else
    add 0 1 0
fi

if bash tests/check-completion.sh "$PYCAP" "$PYSYM"; then
    echo "bash completes the programs' options, formats and commands"
    add 1 0 0
else
    add 0 1 0
fi

# shellcheck disable=SC2086
suite live -m "not alone" $apart tests/integration
wait $beside_pid
trap - EXIT INT TERM
suite alone -m alone tests/integration
end_suite live "live tests:"
end_suite beside "golden tests, and live ones beside the others:"
end_suite alone "live tests alone:"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
