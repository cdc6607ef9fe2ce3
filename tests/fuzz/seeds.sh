#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes what the fuzzers begin with, in BUILDDIR/seeds, of the compiler and of testdata/.
# usage: seeds.sh BUILDDIR
set -eu
build=$1
seeds=$build/seeds
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$seeds"
for target in trace library eh_frame image identity linetable maps native_unwind archive perf_map strip output program source notebook command_note event baseline profile state labels store_answer tasks when job_text pysym; do
    mkdir -p "$seeds/fuzz_$target"
done

# Traces of every kind that the maker knows.
"$build/tools/make_trace" "$seeds/fuzz_trace/plain" samples=20 >/dev/null
"$build/tools/make_trace" "$seeds/fuzz_trace/all" samples=60 processes=2 threads=4 cpus=2 epoch_samples=20 second_event=5 \
    torn=3 unjoined=4 cut=5 gil=1 losses=3 sources=9 labels=3 >/dev/null
"$build/tools/make_trace" "$seeds/fuzz_trace/gil" samples=20 stacks=2 depth=2 gil=1 gil_waits=4 >/dev/null
"$build/tools/make_trace" "$seeds/fuzz_trace/events" samples=10 stacks=2 depth=2 events=3 task_waits=3 >/dev/null
"$build/tools/make_trace" "$seeds/fuzz_trace/sources" samples=20 processes=2 sources=9 >/dev/null
"$build/tools/make_trace" "$seeds/fuzz_trace/unended" samples=5 native=0 end=0 >/dev/null
cp "$seeds"/fuzz_trace/* testdata/traces/3.8-shared.trace testdata/traces/3.12-shared.trace "$seeds/fuzz_library"
head -c 8000 testdata/demo/demo.trace >"$seeds/fuzz_trace/demo"
# The same and real ones through pysym's outputs, which the first byte chooses: in octal some of them, the others are found.
for trace in "$seeds/fuzz_trace/plain" "$seeds/fuzz_trace/all" "$seeds/fuzz_trace/gil" "$seeds/fuzz_trace/sources" testdata/traces/3.8-shared.trace testdata/traces/3.12-shared.trace \
    testdata/traces/3.14-static.trace; do
    for output in 00 01 02 03 04 05 06 07 12 13 41 43 45 47 52 53 55; do
        { printf "\\0$output"; cat "$trace"; } >"$seeds/fuzz_pysym/$(basename "$trace")-$output"
    done
done

printf 'work=20000\nwork.get=4\nbranch=main\nwork=1\nseed=7\nseed=8\n\nnothing\na b=1\nk=\033[2J\n=\nwork=x' >"$seeds/fuzz_command_note/lines"

printf '\0cycles:u,LLC-load-misses/freq=9/pp,r1a8/unit=x,name=y/,cpu/event=0x3c,umask=1,period=5/k,a:b/weight=c,unit=bytes/' \
    >"$seeds/fuzz_event/list"
printf '\0probe:x,mem:0x1/rw/,{cycles}' >"$seeds/fuzz_event/refused"
printf '\1name: x\nID: 840\nformat:\n\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:char b[16];\toffset:12;\tsize:16;\tsigned:1;\n\tfield:size_t count;\toffset:32;\tsize:8;\tsigned:0;\n' \
    >"$seeds/fuzz_event/format"
printf '\10\0\2\0\0\0\0\0\0\0\0\20\0\1\100\0\0\0\0\0\0\0' >"$seeds/fuzz_tasks/words"
printf '\2sched:sched_swich\nother:sched_switch\nodd\n' >"$seeds/fuzz_event/names"
printf '\3config1:0-7,32-35' >"$seeds/fuzz_event/bits"

printf '\n::x::##vso[a]##[b\n \033[1m::##teamcity[\303\251##\314\200[' >"$seeds/fuzz_job_text/commands"
printf 'cpu>80%%,for=500ms,every=1h' >"$seeds/fuzz_when/percent"
printf 'cpu > 2.5, for=2s' >"$seeds/fuzz_when/threads"

printf 'pod:3F0C1F3A-1111 app=shop\nhost:web zone=a b=c=d\nunit:x.service a=1\ncontainer:cri://0123456789abcdef zone=\303\251\n' >"$seeds/fuzz_labels/map"
printf 'service_name={zone|unit|program}-{pid}\na={{x}} {comm}{tid}\nhost=\n' >"$seeds/fuzz_labels/rules"

# A profile without its head, which the fuzzer adds, and a loss.
{
    printf '\0\0\0\0\0\0\0\0\377\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0'
    printf '\0\0\0\0\2\0\0\0__name__\0process_cpu\0host\0caf\303\251\0\5\0\0\0pprof'
} >"$seeds/fuzz_profile/profile"
printf '\1\0\0\0\22\0\0\0\3\0\0\0\0\0\0\0ring_full\0' >"$seeds/fuzz_profile/lost"

# Lines of a push's state behind the head, which the fuzzer adds, and a whole file.
{
    for kind in sent settled sent unstored divided; do
        echo "$kind 0000000000001111 00000000000000aa 120"
    done
    printf 'sent 0000000000001111 00000000000000bb 7\npaused 0000000000001111 4096\ncomplete 0000000000002222 99\nsent 00000000'
} >"$seeds/fuzz_state/lines"
{ printf 'pysym push state 1\ndestination a=b\n'; cat "$seeds/fuzz_state/lines"; } >"$seeds/fuzz_state/file"
# Answers of stores: kind and status, headers, body.
printf '\0\0\310application/proto\n7\n\n{"code":"invalid_argument","message":"profile with labels '\''{a="b"}'\'' is outside of ingestion window (profile timestamp: 2026-11-22 05:00:00 +0000 UTC, the ingestion window starts at 2026-11-22 07:00:00 +0000 UTC and ends at 2026-11-22 08:10:00 +0000 UTC)"}' >"$seeds/fuzz_store_answer/window"
printf '\1\1\54application/json\nSun, 22 Nov 2026 08:00:30 GMT\nhttps://[::1]:7070/a\n{"code":2,"message":"invalid profile type at row 0"}' >"$seeds/fuzz_store_answer/gateway"
printf '\0\0\0text/html\n\nhttp://localhost/\n<html><title>Sign in</title>' >"$seeds/fuzz_store_answer/page"

# A baseline of one run, of one event in one function; the fuzzer sets its checksums right.
section() { # TYPE LENGTH CONTENTS, in octal and as printf's format
    printf "\\$1\\$2\\0\\0\\0${3}crc."
}
{
    printf '\211PYB\r\n\032\n\1\0\0\0\1\0\0\0crc.'
    section 1 10 '\3\0\1a\3cpu'
    section 2 5 '\1\1\1\5\0'
    section 3 14 '\1\0\5\7fprint..'
    section 4 3 '\1\0\0'
    section 5 3 '\1\0\6'
    section 6 107 '\1\0\0\0\0\0\0\0\0\0\2\1\1\0\0\0\0\0\0\0\0\0\0\0\1\55\2\2\1\0\1\1\1\0\0\0\0\0\0\0\360\77\1\1\2\0\1\0\0\0\0\1\1\100\0\1\0\1\1\0\0\1\0\1\1\1\0\1\1\1\1'
    section 0 0 ''
} >"$seeds/fuzz_baseline/small"

# Command lines; the first byte says what is known besides.
printf '\003python3\0-u\0-X\0dev\0-bWerror\0--check-hash-based-pycs\0always\0/a/b.py\0c\0' >"$seeds/fuzz_program/script"
printf '\002/usr/bin/python3.13t\0-Im\0http.server\08000\0' >"$seeds/fuzz_program/module"
printf '\007python\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(7)\0' >"$seeds/fuzz_program/command"

# Libraries with call frame information of every kind and place.
cat >"$work/a.c" <<'C'
#include <alloca.h>
long Py_Version = 0x030c01f0;
char _PyRuntime[256] __attribute__((section(".PyRuntime"))) = "xdebugpy";
int leaf(volatile int *p);
int leaf(volatile int *p) { return *p; }
int recursion(int n) { volatile int a[9] = {n}; return n ? recursion(n - 1) + leaf(a) : leaf(a); }
int moving(int n) { char *p = alloca(n); p[0] = 1; return leaf((int *)p); }
int aligned(int n) { volatile char w[64] __attribute__((aligned(64))); char *p = alloca(n); w[0] = p[0] = 1; return leaf((int *)p) + w[0]; }
C
lib() { # NAME FLAG...
    name=$1
    shift
    gcc -O1 -shared -nostdlib -fPIC "$@" -o "$work/$name" "$work/a.c"
}
lib plain
lib noheader -Wl,--no-eh-frame-hdr
lib debug -g1 -fno-asynchronous-unwind-tables
lib debug-gz -g1 -fno-asynchronous-unwind-tables -gz
lib debug-zgnu -g1 -fno-asynchronous-unwind-tables -gz=zlib-gnu
# With the section where the fuzzers put it, so that its pointers lead to code.
lib placed -fvisibility=hidden -Wl,--no-eh-frame-hdr,-z,noseparate-code,-Ttext=0x100,--section-start=.eh_frame=0x1000
cp "$work/plain" "$work/stripped"
strip "$work/stripped"
# The number of sections is in the first of them, as in a file with very many.
cp "$work/plain" "$work/sections"
first=$(od -An -t u8 -j 40 -N 8 "$work/sections" | tr -d ' ')
printf '\000\000' | dd of="$work/sections" bs=1 seek=60 conv=notrunc status=none
printf '\000\000\200' | dd of="$work/sections" bs=1 seek=$((first + 32)) conv=notrunc status=none
for name in plain noheader debug debug-gz debug-zgnu stripped sections; do
    cp "$work/$name" "$seeds/fuzz_eh_frame/$name"
    cp "$work/$name" "$seeds/fuzz_image/$name"
    cp "$work/$name" "$seeds/fuzz_identity/$name"
done
# A CPython of which no symbol is left.
cat >"$work/host.c" <<'END'
__attribute__((section(".PyRuntime"))) long runtime[100] = {1};
const char tag[] = "cpython-311", version[] = "3.11.2";
struct { long object[3]; const char *name; long basic, item; } code = {{1}, "code", 184, 2}, text = {{1}, "str", 80, 0};
int main(void) { return (int)runtime[0]; }
END
cc -O1 -pie -fPIE -s -o "$seeds/fuzz_image/host" "$work/host.c"
objcopy -O binary --only-section=.eh_frame "$work/placed" "$seeds/fuzz_eh_frame/placed.eh_frame"
objcopy -O binary --only-section=.debug_frame --set-section-flags .debug_frame=alloc "$work/debug" "$seeds/fuzz_eh_frame/debug.debug_frame"

cat /proc/self/maps >"$seeds/fuzz_maps/self"
printf '%s\n' '7f00-7f10 rwxs 00001000 fd:01 42 /a\012b (deleted)' '1000-2000 r--p 00000000 00:00 0' \
    'ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]' '5-4 r--p 0 0:0 0' >"$seeds/fuzz_maps/odd"

"${PYTHON:-python3}" - "$seeds" <<'PY'
import pathlib, sys
seeds = pathlib.Path(sys.argv[1])
for path in sorted(pathlib.Path("testdata/linetable").glob("*.txt")):
    version, tables = 0, []
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == ["python"]:
            version = int(words[1], 16)
        elif words[:1] == ["code"]:
            tables.append((int(words[2]), int(words[3]), bytes.fromhex(words[4].strip("-"))))
    for n, (first, length, table) in enumerate(tables[:12]):
        head = bytes([version >> 24 == 3, version >> 16 & 15, first & 255, min(255, length >> 8), 7, 0])
        (seeds / "fuzz_linetable" / f"{path.stem}-{n}").write_bytes(head + table[:2000])

def word(kind, value):
    return (kind << 14 | value).to_bytes(2, "little")
STACK, CODE, NUMBER = 0, 1, 2
cfi = (seeds / "fuzz_eh_frame" / "placed.eh_frame").read_bytes()
for n, ip in enumerate((0x104, 0x120, 0x150, 0x1800, 0x2001, 0x2011, 0x2020)):
    registers = [word(STACK, 40 + i) for i in range(17)]
    registers[7], registers[16] = word(STACK, 8), word(CODE, ip)
    made = bytes([0, 2]) + bytes([0, 0, 0, 0, 1, 0, 2, 0]) + bytes([0, 8, 0, 0, 0, 0, 6, 0]) + bytes([1]) + \
        bytes([2, 7, 0, 0, 24, 0, 0, 0, 3, 17, 0, 0, 248, 255, 255, 255] + [0] * 16) + bytes([16]) + bytes([0, 2] * 16)
    stack = b"".join(word(*(CODE, 0x110 + 16 * i) if i % 3 else (STACK, 100 + 2 * i)) for i in range(200))
    (seeds / "fuzz_native_unwind" / str(n)).write_bytes(
        b"".join(registers) + bytes([2 * (n & 1), 0]) + len(cfi).to_bytes(2, "little") + cfi + made + stack)
PY

# Archives of a small library, packed and not; the library itself; a table of generated code.
echo 'int f(int x) { return x + 1; }' >"$work/f.c"
"${CC:-cc}" -shared -nostdlib -fPIC -s -Wl,--build-id -o "$work/f.so" "$work/f.c"
cp "$work/f.so" "$seeds/fuzz_strip/library"
tar cf "$seeds/fuzz_archive/plain" -C "$work" f.so f.c
gzip -c "$seeds/fuzz_archive/plain" >"$seeds/fuzz_archive/gzip"
if command -v zstd >/dev/null; then
    zstd -qc "$seeds/fuzz_archive/plain" >"$seeds/fuzz_archive/zstd"
fi
printf '1000 10 f\n0x1008 20 a b;c\n1ff0 ffff g\n' >"$seeds/fuzz_perf_map/table"
# Texts that name their encoding, and paths.
printf '#!/bin/sh\n# -*- coding: latin-1 -*-\nx = "\351"\r\n\tdef f(): pass' >"$seeds/fuzz_source/latin-1"
printf '{"cells": [{"cell_type": "code", "source": ["a = 1\\n", "b"]}, {"cell_type": "code", "source": "%%%%time\\nx"}], "nbformat": 4}' >"$seeds/fuzz_notebook/cells"
printf '/tmp/ipykernel_1829/4278467509.py' >"$seeds/fuzz_notebook/name"
printf '/srv/app/../lib/./x//y.py' >"$seeds/fuzz_source/path"
# A file opened, written, synced and closed; an archive likewise.
printf '\1\0\0\0\0\0\0\0\2\0\0\0\3\0\0\0abc\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0' >"$seeds/fuzz_output/trace"
printf '\5\0\0\0\0\0\0\0\6\0\0\0\3\0\0\0abc\7\0\0\0\0\0\0\0' >"$seeds/fuzz_output/archive"
