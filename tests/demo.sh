#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records testdata/demo/demo.py and shows what comes out. Where BPF is not allowed, says so and
# symbolizes the capture kept beside it instead. Leaves demo.speedscope.json and demo.folded here.
# usage: demo.sh BUILDDIR
set -eu
cd "$(dirname "$0")/.."
build=$1
demo=testdata/demo
out=$build/demo
python=/usr/bin/python3
seconds=5
mkdir -p "$out"

sudo=
[ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo=sudo

# shellcheck disable=SC2046
${CC:-cc} -O2 -g -shared -fPIC $($python -c 'import sysconfig; print("-I" + sysconfig.get_paths()["include"])') \
    -o "$out/demo_native.so" $demo/demo_native.c

trace=$out/demo.trace archive=
rm -f "$trace"
echo "== pycap record: a Python program of $seconds s"
if $sudo "$build/pycap" record -F 499 -o "$trace" -- env PYTHONPATH="$out" $python $demo/demo.py $seconds >"$out/clock" 2>"$out/log"; then
    cat "$out/log"
elif [ -e "$trace" ]; then
    cat "$out/log" >&2
    echo "pycap record failed." >&2
    exit 1
else
    cat "$out/log"
    echo "Recording is not possible here, for the reason above. What follows is a capture of the same program"
    echo "kept in $demo (see record.sh there). Native frames have names only where this machine's binaries have the"
    echo "same build IDs."
    trace=$demo/demo.trace archive="--symfs $demo"
    cp $demo/clock "$out/clock"
    if ! [ -e $trace ]; then
        echo "There is no kept capture: $trace is missing." >&2
        exit 1
    fi
fi

pysym() {
    # shellcheck disable=SC2086
    "$build/pysym" "$trace" $archive "$@"
}
echo
echo "== pysym --format summary"
pysym --format summary
echo
echo "== the ten hottest lines (pysym --format top --by line)"
pysym --format top --by line
pysym --format speedscope -o demo.speedscope.json
pysym --format folded -o demo.folded

echo
echo "== where the time went: by the program's own clock, and in the profile"
awk '
    FNR == NR { order[++places] = $1; clock[$1] = $2; next }
    !/main \(demo\.py/ { next }
    {
        total += $NF
        for (i = 1; i <= places; i++)
            if (index($0, ";" order[i] " (demo.py:")) { profile[order[i]] += $NF; break }
            else if (order[i] == "score_order" && index($0, ";score_orders (demo.py:")) { profile[order[i]] += $NF; break }
    }
    END {
        if (!total) { print "no stack of demo.py in the profile"; exit 1 }
        for (i = 1; i <= places; i++)
            printf "%-14s %5.1f %%  %5.1f %%\n", order[i], clock[order[i]], 100 * profile[order[i]] / total
    }' "$out/clock" demo.folded

cat <<'EOF'

To look at it:
  demo.speedscope.json   drag it into https://www.speedscope.app (it stays in the browser), or: npx speedscope demo.speedscope.json
  demo.folded            flamegraph.pl demo.folded >demo.svg
EOF
