#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records the traces kept here: record.sh NAME PYTHON [ROOT]   (as root; needs build/pycap, build/pysym)
#   NAME    version and flavour, as 3.9-shared; leaves NAME.trace, NAME.told (what the interpreter said of itself) and
#           NAME.folded, which is to be looked at before it is committed
#   PYTHON  an interpreter; its folder is mounted at /opt/python, so that a trace does not tell where it was made
#   ROOT    a root tree (tests/interpreters.sh) that PYTHON is a path in
# Fails when a sample differs from what was told, and when NAME.trace is larger than 30 KB.
set -euo pipefail
name=$1 python=$2 root=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
checkout=$here/../..
prefix=$(dirname "$(dirname "$(readlink -f "$python")")")
trace=$here/$name.trace

# shellcheck disable=SC2016
"$checkout/build/pycap" record -q -F 499 --no-kernel -o "$trace" -- unshare --mount --propagation private sh -ceu '
program=$1 python=$2 prefix=$3 root=$4
mount -t tmpfs tmpfs "$root/opt"
mkdir "$root/opt/app"
cp "$program" "$root/opt/app/program.py"
if [ -z "$root" ] && [ "$prefix" != /usr ]; then
    mkdir /opt/python
    mount --bind "$prefix" /opt/python
    export LD_LIBRARY_PATH=/opt/python/lib
    python=/opt/python/bin/$(basename "$(readlink -f "$python")")
fi
if [ -n "$root" ]; then
    # Not merely chroot: the paths of mappings would begin where the tree lies.
    mount --rbind "$root" "$root"
    cd "$root"
    mkdir opt/outside
    pivot_root . opt/outside
fi
cd /opt/app
exec "$python" -B -S -E /opt/app/program.py 0.02
' sh "$here/program.py" "$python" "$prefix" "$root" >"$here/$name.told"

"$checkout/build/pysym" "$trace" --format folded --python-only --columns --full-filenames -o "$here/$name.folded"
size=$(stat -c %s "$trace")
[ "$size" -le 30000 ] || { echo "$name: $size bytes are too many" >&2; exit 1; }
python3 "$checkout/tests/tools/matrix.py" --trace "$trace" --told "$here/$name.told" --as /opt/app/program.py "$name"
