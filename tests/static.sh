#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Links pycap statically and runs it in a root that holds nothing else. build/pycap is linked as always afterwards.
# usage: static.sh      as root
# Exit: 0, 1 failed, 77 cannot run here.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/packaged.sh

[ "$(id -u)" = 0 ] || { echo "SKIP: a root of its own needs root" >&2; exit 77; }
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
make all
dir=$(mktemp -d)
trap 'rm -rf "$dir"; make build/pycap' EXIT
root=$dir/root
mkdir -p "$root/proc" "$root/sys"
make STATIC=1 build/pycap
cp build/pycap "$root/pycap"

# shellcheck disable=SC2016
expect "no interpreter and no libraries" sh -c \
    '! readelf -lW "$0" | grep -q INTERP && ! readelf -dW "$0" | grep -q NEEDED' "$root/pycap"
expect "pycap --version" in_root "$root" /pycap --version
expect_recording "$root" /pycap
# Archives are packed by libraries, too. The binaries are those of this machine.
if [ -e "$root/trace.bin" ]; then
    for kind in zst gz xz bz2; do
        expect "pycap archive to .tar.$kind" "$root/pycap" archive -q "$root/trace.bin" -o "$dir/trace.tar.$kind"
        # shellcheck disable=SC2016
        expect "tar finds binaries in it" sh -c 'tar tf "$0" | grep -q "/elf$"' "$dir/trace.tar.$kind"
    done
fi
report
