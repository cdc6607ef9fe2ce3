#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a tier, or those that a word names, and closes with how long it took and the counts.
# usage: check.sh BUILDDIR check          all that needs no chance and no clock, and a live test of each capability
#        check.sh BUILDDIR asan [whole]   of these the tests in C, those of pysym that meet most of it (mark sanitized), and the live
#                                         tests that put a load on the recorder (mark load); whole: all that sanitizers can judge
#        check.sh BUILDDIR live           the live tests that check leaves out, with all interpreters
#        check.sh BUILDDIR unit           unit tests only: no privilege, no compiler
#        check.sh BUILDDIR tsan NAMES     the tests in C of these files, and the recorder under a load
#        check.sh BUILDDIR long           what is too long for every run
#        check.sh BUILDDIR named WORD     a file: merge, test_merge, tests/unit/test_merge.c; tests with that in their name: count; an
#                                         expression for pytest's -k: "folded and not strict"; test_pysym.py::test_folded
#        check.sh --programs WORD         prints the programs of tests in C that WORD needs
# PYCAP, PYSYM: the programs tested, by default those of BUILDDIR. PYTHONS: interpreters of the live tests. JOBS: how many tests
# run side by side. PYTEST_ADDOPTS as pytest has it.
# Exit: 0, 1 failed, 2 WORD names nothing.
set -u
cd "$(dirname "$0")/.." || exit 1

# The test files that are called $1.
files_of() {
    name=${1##*/} name=${name%.c} name=${name%.py}
    for file in "tests/unit/test_${name#test_}.c" "tests/toolchain/test_${name#test_}.c" "tests/integration/test_${name#test_}.py"; do
        [ ! -e "$file" ] || echo "$file"
    done
}

# Those in C that have a test with $1 in its name.
files_with() {
    case $1 in
    *[!a-zA-Z0-9_]*) ;;
    *) grep -lE "^TEST(_WITH)?\(\w*${1#test_}" tests/unit/test_*.c tests/toolchain/test_*.c ;;
    esac
}

if [ "$1" = --programs ]; then
    { files_of "$2" | grep . || files_with "$2"; } | sed -n 's,.*/\(.*\)\.c$,\1,p'
    exit
fi

build=$1 tier=$2 word=${3-}
export BUILD="$build" PYCAP="${PYCAP:-$PWD/$build/pycap}" PYSYM="${PYSYM:-$PWD/$build/pysym}"
# Tests that build something themselves build it plainly, also when make was told otherwise.
unset SANITIZE TSAN MAKEFLAGS MAKEOVERRIDES MFLAGS
logs=$build/tests
mkdir -p "$logs"
began=$(date +%s)

# A live test waits most of its time, the others want a processor.
jobs=$(($(nproc) + 1)) marks="not long"
case $tier in
check)
    marks="not long and (smoke or not live)"
    set -- tests ;;
asan)
    marks="not long and ($([ "$word" = whole ] && echo "not live" || echo "c or sanitized") or load) and not unsanitized"
    set -- tests ;;
live)
    marks="not long and live and not smoke" jobs=$(($(nproc) * 2))
    set -- tests/integration ;;
unit) set -- tests/unit ;;
tsan)
    marks="not long and (c or load) and not unsanitized" jobs=$(($(nproc) * 2))
    set -- tests/integration
    for name in $word; do
        set -- "$@" tests/*/"$name.c"
    done ;;
long)
    marks=long jobs=0
    set -- tests/integration ;;
named)
    jobs=0
    files=$(files_of "$word")
    # shellcheck disable=SC2046,SC2086
    case $files:$word in
    *:*/*::*) set -- "$word" ;;
    *:*::*) set -- "tests/integration/$word" ;;
    :*) set -- -k "$word" tests/integration $(files_with "$word") ;;
    *) set -- $files ;;
    esac
    echo "running pytest $*" ;;
*)
    echo "check.sh: no tier is called $tier" >&2
    exit 2 ;;
esac

passed=0 failed=0 skipped=0
# run NAME JOBS MARKS PYTEST-ARGUMENT...: the tests with these marks; adds up what the report NAME.xml counts.
run() {
    report=$logs/$1.xml workers=$2 chosen=$3
    shift 3
    rm -f "$report"
    "${PYTHON:-/usr/bin/python3}" -m pytest -q -rsfE --tb=short --durations=10 --durations-min=1 -p no:cacheprovider -n "$workers" \
        -m "$chosen" --junit-xml="$report" "$@" </dev/null
    status=$?
    counts=$(sed -n 's/.*<testsuite [^>]*errors="\([0-9]*\)" failures="\([0-9]*\)" skipped="\([0-9]*\)" tests="\([0-9]*\)".*/\1 \2 \3 \4/p' "$report" 2>/dev/null | head -n 1)
    case $status:$counts in
    4:* | 5:*) counts="0 0 0 0" ;; # nothing has that name, or was chosen
    [01]:?*) ;;
    *) counts="1 0 0 1" ;; # it broke off
    esac
    # shellcheck disable=SC2086
    set -- $counts
    passed=$((passed + $4 - $1 - $2 - $3)) failed=$((failed + $1 + $2)) skipped=$((skipped + $3))
    [ $status != 1 ] || [ $failed != 0 ] || failed=1
}

run "$tier" "${JOBS:-$jobs}" "$marks and not alone" "$@"
[ "$tier" = unit ] || [ "$tier" = tsan ] || run "$tier-alone" 0 "$marks and alone" "$@"
if [ "$tier" = named ] && [ $((passed + failed + skipped)) = 0 ]; then
    echo "no test is named $word: not a file of tests/unit, tests/toolchain or tests/integration, no test in one, nothing for pytest -k" >&2
    exit 2
fi
[ $((passed + failed)) != 0 ] || [ "$tier" = named ] || failed=1
seconds=$(($(date +%s) - began))
echo "took $((seconds / 60)) min $((seconds % 60)) s on $(nproc) processors"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
