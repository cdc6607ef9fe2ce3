#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that a word names, for `make check TEST=WORD`:
#   a file       merge, test_merge, tests/unit/test_merge.c: tests/unit/test_merge.c, tests/integration/test_merge.py, or both;
#                symbols: tests/toolchain/test_symbols.c
#   a test       test_count, or count: that function of the unit tests, and those tests of pytest whose names hold the word
#   pytest's -k  "folded and not strict"; or a test of pytest in full: tests/integration/test_pysym.py::test_folded
# A file goes before a test of that name. Prints what it runs, and closes with the counts. What names nothing is an error.
# usage: check-one.sh --programs WORD      prints the unit test programs to build for it, by name
#        check-one.sh BUILDDIR WORD        environment: as check.sh has it; options for pytest in PYTEST_ADDOPTS
# Exit: 0, 1 failed, 2 nothing has that name.
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# = 2 ] || { sed -n 's/^# usage/usage/p' "$0" >&2; exit 2; }
word=$2

file=${word##*/} function=
case $word in
*/*::*) file='' ;;
*::*) file='' word=tests/integration/$word ;;
*) file=${file%.c} file=${file%.py} file=test_${file#test_} ;;
esac
unit=
golden=
[ ! -e "tests/unit/$file.c" ] && [ ! -e "tests/toolchain/$file.c" ] || unit=$file
[ ! -e "tests/integration/$file.py" ] || golden=tests/integration/$file.py
if [ -n "$file" ] && [ -z "$unit$golden" ]; then
    # cmocka's tests are named by their functions; a name is a word of C.
    case $file in
    *[!a-zA-Z0-9_]*) ;;
    *)
        function=$file
        unit=$(grep -lE "^TEST(_WITH)?\(${function#test_}[,)]" tests/unit/test_*.c tests/toolchain/test_*.c | sed 's,.*/,,; s/\.c$//') ;;
    esac
fi
if [ "$1" = --programs ]; then
    echo "$unit"
    exit
fi

build=$1 failed=0 ran=0 passed=0 skipped=0
export PYCAP="${PYCAP:-$PWD/$build/pycap}" PYSYM="${PYSYM:-$PWD/$build/pysym}"
unset SANITIZE MAKEFLAGS MAKEOVERRIDES MFLAGS
logs=$build/tests
mkdir -p "$logs"
[ -z "$function" ] || export CMOCKA_TEST="$function"
for name in $unit; do
    ran=1
    echo "running $logs/$name${function:+, only $function}"
    sh tests/run-unit.sh "$logs" "$logs/$name" >"$logs/one.out"
    grep -v ' failed, ' "$logs/one.out"
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$logs/one.out" | tail -n 1)
    # shellcheck disable=SC2086
    set -- ${counts:-0 1 0}
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
done

pytest() {
    "${PYTHON:-/usr/bin/python3}" -m pytest -q -rs --tb=short -o cache_dir="$logs/one-cache" "$@" </dev/null
}

if [ -n "$golden" ]; then
    set -- "$golden"
elif [ -n "$unit" ] && [ -z "$function" ]; then
    set --
elif [ -z "$file" ]; then
    set -- "$word"
else
    set -- -k "$word" tests/integration
    # What -k names nothing with is said by status 5 of pytest, before anything runs.
    pytest --collect-only "$@" >"$logs/one.out" 2>&1
    case $? in
    0) ;;
    5) set -- ;;
    *)
        tail -n 3 "$logs/one.out" >&2
        exit 2 ;;
    esac
fi
if [ $# -gt 0 ]; then
    ran=1
    echo "running pytest $*"
    rm -f "$logs/one.xml"
    pytest --junit-xml="$logs/one.xml" "$@"
    status=$?
    counts=$(sed -n 's/.*<testsuite [^>]*errors="\([0-9]*\)" failures="\([0-9]*\)" skipped="\([0-9]*\)" tests="\([0-9]*\)".*/\1 \2 \3 \4/p' "$logs/one.xml" 2>/dev/null | head -n 1)
    case $status:$counts in
    [01]:?*)
        # shellcheck disable=SC2086
        set -- $counts
        passed=$((passed + $4 - $1 - $2 - $3)) failed=$((failed + $1 + $2)) skipped=$((skipped + $3)) ;;
    4:* | 5:*) ran=0 ;;
    *) failed=$((failed + 1)) ;;
    esac
fi
if [ $ran = 0 ]; then
    echo "no test is named $word: not a file of tests/unit, tests/toolchain or tests/integration, no test in one, nothing for pytest -k" >&2
    exit 2
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
