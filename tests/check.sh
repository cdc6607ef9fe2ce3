#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every suite (unit; golden and live by pytest) and closes with the counts of all.
# usage: check.sh BUILDDIR UNITTEST...
# PYCAP, PYSYM: the programs tested, by default those of BUILDDIR. PYTHONS: interpreters
# of the live tests. PYTEST_ADDOPTS as pytest has it. RETRY=1: live tests that fail are tried once more.
set -u
build=$1
python=${PYTHON:-/usr/bin/python3}
shift
cd "$(dirname "$0")/.." || exit 1
export PYCAP="${PYCAP:-$PWD/$build/pycap}" PYSYM="${PYSYM:-$PWD/$build/pysym}"
# Tests that build something themselves build it plainly, also when make was told otherwise.
unset SANITIZE MAKEFLAGS MAKEOVERRIDES MFLAGS
logs=$PWD/$build/tests
mkdir -p "$logs"
rm -rf "$logs"/*-cache
passed=0 failed=0 skipped=0

add() { # PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# Three processes run side by side, so that they end at about the same time: the live tests; BESIDE, which compare stack by
# stack, or need no sampler; and THIRD, which come after the unit tests: they mostly wait, for servers, programs and time, or
# need no sampler. What is marked alone comes when all have ended. What is marked long is for make check-long.
BESIDE="
    pysym
    annotate
    diff
    page
    wall
    waiting_page
    gil_waits
    idle_threads
    split
    fleet
    ndjson
    baseline
    terminal
    pprof
    firefox
    agree
    perf_data
    page_strangers
    page_access
    page_filters
    page_views
    page_compare
    traces
    bench
    matrix
    perf_files
    unwind_check
    ways
    privacy
    proc
    privileges
    lines
    filters
    jit
    docs
    choosing
    releases
    event_kinds
    leak_first
    memory
    memory_page
    page_scripts
    threads
"
THIRD="
    asyncio_tasks
    profile_store
    store_http
    push
    push_growing
    push_traces
    consumers
    pprof_readers
    compare_draws
    stats
    bombs
    checks
    wakes
    archive
    command
    continuous
    dump
    flight
    live_view
    service
    slow_reader
    top
    usage
"

# With sanitizers many live tests are left out, and these then run in their time.
# shellcheck disable=SC2086
case $build in
*asan) THIRD=$(printf '%s\n' $THIRD | grep -vxE 'flight|push|top') ;;
esac

# suite NAME CACHE PYTEST-ARGUMENT...: runs it into NAME.out; what it counts is in NAME.xml, pytest's exit code in
# NAME.status, and the names of the tests that failed in the folder CACHE.
suite() {
    name=$1 cache=$2
    shift 2
    rm -f "$logs/$name.xml" "$logs/$name.status"
    "$python" -m pytest -q -rsfE --tb=short --durations=15 -o cache_dir="$logs/$cache" \
        --junit-xml="$logs/$name.xml" "$@" >"$logs/$name.out" 2>&1 </dev/null
    echo $? >"$logs/$name.status"
}

# The counts of a suite: passed, failed, skipped. pytest's own failures (a test file that doesn't load) are errors in the
# report; no report is one failure. Status 5: no test was chosen.
counts_of() {
    status=$(cat "$logs/$1.status" 2>/dev/null || echo none)
    counts=$(sed -n 's/.*<testsuite [^>]*errors="\([0-9]*\)" failures="\([0-9]*\)" skipped="\([0-9]*\)" tests="\([0-9]*\)".*/\1 \2 \3 \4/p' "$logs/$1.xml" 2>/dev/null | head -n 1)
    case "$status:$counts" in
    [015]:?*)
        # shellcheck disable=SC2086
        set -- $counts
        echo $(($4 - $1 - $2 - $3)) $(($1 + $2)) "$3" ;;
    *) echo 0 1 0 ;;
    esac
}

# Shows what a suite said, and adds its counts. A failure is a failure. On a machine that is too busy for live tests
# RETRY=1 tries AGAIN_MOST failures of a suite once more, with nothing beside them: what passes then is a pass that is
# named. More failures than that are not chance; as many may come of one recording.
AGAIN_MOST=4
end_suite() {
    echo "$2"
    cat "$logs/$1.out"
    # shellcheck disable=SC2046
    set -- "$1" $(counts_of "$1")
    if [ "${RETRY:-0}" = 1 ] && [ "$(cat "$logs/$1.status" 2>/dev/null)" = 1 ] && [ "$3" -le $AGAIN_MOST ]; then
        suite "$1-again" "$1-cache" --last-failed --last-failed-no-failures none tests/integration
        echo "$3 failed, once more and alone:"
        cat "$logs/$1-again.out"
        # shellcheck disable=SC2046
        set -- "$1" "$2" "$3" "$4" $(counts_of "$1-again")
        if [ "$5" = "$3" ]; then
            again=$((again + $3))
            set -- "$1" $(($2 + $3)) 0 "$4"
        fi
    fi
    add "$2" "$3" "$4"
}
again=0

files_of() { # NAME...: the files of their tests, each with the prefix $prefix
    for name in "$@"; do
        echo "${prefix:-}tests/integration/test_$name.py"
    done
}
# shellcheck disable=SC2086
apart=$(prefix=--ignore= files_of $BESIDE $THIRD)
# shellcheck disable=SC2046,SC2086
suite beside beside-cache -m "not alone and not long" $(files_of $BESIDE) &
beside_pid=$!
{
    sh tests/run-unit.sh "$logs" "$@" >"$logs/unit.out" 2>&1
    # shellcheck disable=SC2046,SC2086
    suite third third-cache -m "not alone and not long" $(files_of $THIRD)
} &
third_pid=$!
trap 'kill $beside_pid $third_pid 2>/dev/null' EXIT INT TERM

wrong=
# check WHAT COMMAND...: the command says what is wrong, and WHAT is true when it succeeds.
check() {
    what=$1
    shift
    if "$@"; then
        echo "  ok      $what"
        add 1 0 0
    else
        echo "  FAILED  $what"
        wrong="$wrong  FAILED  $what
"
        add 0 1 0
    fi
}

echo "checks of the sources and the documents:"
check "docs/trace-format.md has every record, field and loss" sh tests/check-format-doc.sh
check "no C code compares versions of CPython: versions.def says what differs" sh tests/check-versions.sh
check "the manual pages have every option, and none that does not exist" sh tests/check-manual.sh "$PYCAP" "$PYSYM"
check "the documents' links lead somewhere, and the commands they show are understood" "$python" tests/check-docs.py "$PYCAP" "$PYSYM"
check "bash completes the programs' options, formats and commands" bash tests/check-completion.sh "$PYCAP" "$PYSYM"
check "one name stands for one thing, and all libraries link together" "$python" tests/check-names.py "$build"
check "includes are as docs/design.md says, and go round in no circle" "$python" tests/check-includes.py
check "each file has the license that LICENSE and the package say" "$python" tests/check-licenses.py
check "one version: Makefile, CHANGES, package, manifests and documents" sh tests/check-release.sh
check "no function has more than 60 lines, no file more than 600" "$python" tests/check-sizes.py

# shellcheck disable=SC2086
suite live live-cache -m "not alone and not long" $apart tests/integration
wait $beside_pid $third_pid
trap - EXIT INT TERM
suite alone alone-cache -m "alone and not long" tests/integration
echo "unit tests:"
cat "$logs/unit.out"
counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$logs/unit.out" | tail -n 1)
# shellcheck disable=SC2086
add ${counts:-0 1 0}
end_suite live "live tests:"
end_suite beside "golden tests, and live ones beside the others:"
end_suite third "tests that mostly wait, and further golden ones:"
end_suite alone "live tests alone:"

# What failed stands at the end, after the many lines of skipped tests' reasons.
if [ $failed != 0 ]; then
    echo "what failed:"
    printf '%s' "$wrong"
    grep -B 8 FAILED "$logs/unit.out"
    for name in live beside third alone; do
        sed -n '/^=* \(FAILURES\|ERRORS\) =*$/,/^-* generated xml/p' "$logs/$name.out" | grep -v '^-* generated xml' | tail -n 150
        grep -E '^(FAILED|ERROR) ' "$logs/$name.out"
    done
fi
[ $again = 0 ] || echo "of these $again only when tried again: see FAILURES above"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
