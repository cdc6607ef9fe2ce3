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

echo "golden and live tests:"
report=$logs/pytest.xml
rm -f "$report"
${PYTHON:-/usr/bin/python3} -m pytest -q -rs --tb=short -p no:cacheprovider --junit-xml="$report" tests/integration
status=$?
# pytest's own failures (a test file that doesn't load) count as errors in the report; no report is one failure.
counts=$(sed -n 's/.*<testsuite [^>]*errors="\([0-9]*\)" failures="\([0-9]*\)" skipped="\([0-9]*\)" tests="\([0-9]*\)".*/\1 \2 \3 \4/p' "$report" 2>/dev/null | head -n 1)
if [ -n "$counts" ] && [ $status -le 1 ]; then
    # shellcheck disable=SC2086
    set -- $counts
    add $(($4 - $1 - $2 - $3)) $(($1 + $2)) "$3"
else
    echo "pytest's exit code is $status"
    add 0 1 0
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
