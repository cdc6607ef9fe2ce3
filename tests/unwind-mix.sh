#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records each part of testdata/programs/mix.py with --unwind both and prints how the recorded stacks agree with the
# witnesses of pysym --format unwind-check: a line for each interpreter and part, and below it each cause by which
# stacks part. Wheels (numpy, C++ and Rust extensions) go to the cache; parts that lack theirs say so.
# usage: unwind-mix.sh [-s SECONDS] [-F HZ] [-o FOLDER] [-p "PART..."] [PYTHON...]
#   -o keeps traces and reports. Default: 5 s at 499 Hz, all parts, python3 and /usr/bin/python3.
# Environment: PYCAP and PYSYM (default build/pycap, build/pysym), CC.
# Exit: 0, 1 a recording failed or stacks differ, 2 usage.
set -euo pipefail
. "$(dirname "$0")/debian.sh"
root=$(cd "$tests/.." && pwd)
PYCAP=${PYCAP:-$root/build/pycap} PYSYM=${PYSYM:-$root/build/pysym}
mix=$root/testdata/programs/mix.py
seconds=5 hz=499 out= parts=
while getopts s:F:o:p: option; do
    case $option in
    s) seconds=$OPTARG ;;
    F) hz=$OPTARG ;;
    o) out=$OPTARG ;;
    p) parts=$OPTARG ;;
    *) sed -n '/^# usage/,/^# Default/p' "$0" >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- python3 /usr/bin/python3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${out:-$scratch}
mkdir -p "$out"
"${CC:-cc}" -O2 -fPIC -shared -o "$scratch/libmix.so" "$root/testdata/programs/mix_native.c"
export MIX_NATIVE=$scratch/libmix.so

# The wheels for a version, once. A package that can't be had leaves its part out.
wheels() { # X.Y
    local folder=$cache/mix-wheels/$1 package
    mkdir -p "$folder"
    cache_lock mix-wheels
    if [ ! -e "$folder/.complete" ]; then
        for package in numpy rapidfuzz kiwisolver orjson pydantic-core cryptography; do
            python3 -m pip install --quiet --disable-pip-version-check --target "$folder" --upgrade --python-version "$1" \
                --implementation cp --only-binary=:all: "$package" >"$folder/$package.log" 2>&1 ||
                say "  no $package for $1: $(tail -n 1 "$folder/$package.log")"
        done
        touch "$folder/.complete"
    fi
    echo "$folder"
}

# A row's witness column, as printed: 1 libunwind, 2 libdwfl, 3 host.
share() { # REPORT LABEL COLUMN
    awk -v label="$2" -v column="$3" 'index($0, label) == 1 {
        n = split(substr($0, length(label) + 1), field, " ")
        print field[column * 3 - 1]; exit }' "$1"
}

status=0
printf '%-13s %-17s %7s %10s %10s %10s %10s %9s %9s\n' interpreter part samples libunwind libdwfl host 'cut' 'to start' joined
for python; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    folder=$(wheels "$version")
    name=$version-$("$python" -c 'import sys; print("debian" if sys.executable.startswith("/usr/bin") else "other")')
    for part in ${parts:-$("$python" "$mix" --list)}; do
        trace=$out/$name-$part.bin report=$out/$name-$part.txt log=$scratch/log
        tried=0
        PYTHONPATH=$folder "$python" "$mix" "$part" 0 2>"$log" >&2 || tried=$?
        if [ $tried != 0 ]; then
            [ $tried = 77 ] && outcome=skipped || outcome=failed status=1
            printf '%-13s %-17s %s: %s\n' "$name" "$part" $outcome "$(tail -n 1 "$log")"
            continue
        fi
        if ! PYTHONPATH=$folder "$PYCAP" record -q --unwind both -F "$hz" -o "$trace" -- "$python" "$mix" "$part" "$seconds" \
            2>"$log" >&2 || ! "$PYSYM" "$trace" --format unwind-check -o "$report" 2>"$log"; then
            printf '%-13s %-17s failed: %s\n' "$name" "$part" "$(tail -n 1 "$log")"
            status=1
            continue
        fi
        printf '%-13s %-17s %7s' "$name" "$part" "$(awk '/^with a stack/ { print $7 }' "$report")"
        for column in 1 2 3; do
            printf ' %8s %%' "$(share "$report" 'identical ' "$column")"
        done
        printf ' %8s %%' "$(share "$report" "identical up to the snapshot's end" 1)"
        printf ' %7s %%' "$(share "$report" "recorded: reached the thread's start" 1)" "$(share "$report" 'joins complete' 1)"
        echo
        sed -n '/^where they part/,$p' "$report" | awk 'NR > 2 && !/^      at/' | sed 's/^/    /'
        awk '/^different/ { exit $2 + $5 + $8 > 0 }' "$report" || status=1
    done
done
exit $status
