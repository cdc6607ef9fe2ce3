#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the programs without libraries in a root that holds nothing else, and compares what they show with what those with libraries do.
# usage: static.sh      as root
# Exit: 0, 1 failed, 77 cannot run here.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/packaged.sh

[ "$(id -u)" = 0 ] || { echo "SKIP: a root of its own needs root" >&2; exit 77; }
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
static_libraries_or_skip
make all static
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$dir/root
mkdir -p "$root/proc" "$root/sys"
cp build/static/bin/pycap build/static/bin/pysym "$root"

for program in pycap pysym; do
    # shellcheck disable=SC2016
    expect "$program: no interpreter and no libraries" sh -c \
        '! readelf -lW "$0" | grep -q INTERP && ! readelf -dW "$0" | grep -q NEEDED' "$root/$program"
    expect "$program --version" in_root "$root" "/$program" --version
done
expect_recording "$root" /pycap
# Archives are packed by libraries, too. The binaries are those of this machine.
if [ -e "$root/trace.bin" ]; then
    for kind in zst gz xz bz2; do
        expect "pycap archive to .tar.$kind" "$root/pycap" archive -q "$root/trace.bin" -o "$dir/trace.tar.$kind"
        # shellcheck disable=SC2016
        expect "tar finds binaries in it" sh -c 'tar tf "$0" | grep -q "/elf$"' "$dir/trace.tar.$kind"
    done
fi
# All that pysym shows, to stores over TLS and from debuginfod, is what it shows with libraries.
show() { # PYSYM FOLDER FORMAT TRACE: all that it writes, and says
    rm -rf "$2" && mkdir "$2" && "$1" "$4" -f "$3" -o "$2/out" >"$2/said" 2>&1 || echo "$1 fails at $4"
}
for format in summary folded speedscope pprof html ndjson perf-script; do
    for trace in testdata/traces/*.trace; do
        show build/pysym "$dir/one" $format "$trace"
        show "$root/pysym" "$dir/other" $format "$trace"
        diff -rq "$dir/one" "$dir/other" | sed "s|^|$trace: |" || true
    done >"$dir/differences"
    # shellcheck disable=SC2016
    expect "-f $format of testdata's traces" sh -c 'cat "$0"; [ ! -s "$0" ]' "$dir/differences"
done
make build/tools/make_trace build/tools/make_bomb build/tools/trace_bytes
expect "stores over TLS, debuginfod" env PYSYM="$root/pysym" MAKE_TRACE=build/tools/make_trace \
    "${PYTHON:-/usr/bin/python3}" -m pytest -q -p no:cacheprovider tests/integration/test_push.py tests/integration/test_archive.py \
    -k "tls or recordings or debuginfod"
report
