#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages of the programs without libraries, twice, and installs each as its users do: in a venv, by rpm, and in root trees of
# other systems, where a program's own clock says whether the profile is true.
# usage: packages.sh [--all]     with --all in all root trees, else in those that other tests need, too; as root
# Exit: 0, 1 failed, 77 cannot run here.
# shellcheck disable=SC2016,SC2154
set -euo pipefail
. "$(dirname "$0")/debian.sh"
cd "$checkout"
. tests/packaged.sh

root_trees_or_skip
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
version=$(sed -n 's/^VERSION := //p' Makefile)
python=${PYTHON:-/usr/bin/python3}
dir=$(mktemp -d)
trees=()
remove() {
    for tree in "${trees[@]}"; do umount "$tree" || true; done
    rm -rf "$dir"
}
trap remove EXIT

static_libraries_or_skip
make tarball wheel rpm >"$dir/make.log" 2>&1 || { tail -n 20 "$dir/make.log"; exit 1; }
files=(build/pycap-"$version"-linux-x86_64.tar.gz build/pycap_profiler-"$version"-*.whl build/pycap-"$version"-1.x86_64.rpm build/pysym-"$version"-1.x86_64.rpm)
tarball=${files[0]} wheel=${files[1]}
mkdir "$dir/first"
mv "${files[@]}" "$dir/first"
find build/static/usr -exec touch -d 2020-02-02 {} +
(umask 077 && TZ=Asia/Tokyo make tarball wheel rpm) >"$dir/make.log" 2>&1 || tail -n 20 "$dir/make.log"
for file in "${files[@]}"; do
    expect "the same bytes again: ${file##*/}" cmp "$file" "$dir/first/${file##*/}"
done
expect "the wheel is smaller than 8 MB" [ "$(stat -c %s "$wheel")" -lt 8000000 ]
expect "the texts of licenses are whole" sh -c 'for text in "GNU LESSER GENERAL PUBLIC LICENSE" "GNU LIBRARY GENERAL PUBLIC LICENSE" "Version 3, 29 June 2007"; do
    grep -q "$text" "$0" || exit 1; done' build/static/usr/share/doc/pycap/THIRD-PARTY
# tests/static.sh asks that one all that pysym shows and sends.
expect "the wheel has the programs of make static" "$python" -c '
import pathlib, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for name in [name for name in wheel.namelist() if "/scripts/" in name]:
    assert wheel.read(name) == (pathlib.Path("build/static/bin") / pathlib.Path(name).name).read_bytes(), name' "$wheel"
expect "the list of components is whole" "$python" -c '
import json, sys
bill = json.load(open(sys.argv[1]))
names = {part["bom-ref"] for part in bill["components"]}
assert {"pycap", "pysym", "elfutils", "libbpf", "glibc", "curl"} <= names
assert all(set(row["dependsOn"]) <= names for row in bill["dependencies"])
assert all(part["licenses"] and part["version"] for part in bill["components"])' build/static/usr/share/doc/pycap/pycap.cdx.json

# ---- an installer of Python packages: any version of pip is a program in its own wheel ----
pip=$cache/wheels/pip-25.0.1-py3-none-any.whl
if [ ! -e "$pip" ]; then
    began=$SECONDS
    python3 -m pip download -q --disable-pip-version-check --no-deps --retries 1 -d "$cache/wheels" pip==25.0.1 >"$dir/pip.log" 2>&1 || true
    fetched $((SECONDS - began))
fi
[ -e "$pip" ] || skipped "pip cannot be fetched: $(tail -n 1 "$dir/pip.log")"

# Systems as old as CentOS 7, and Alpine.
[ ! -e "$pip" ] || for platform in manylinux1_x86_64 manylinux2014_x86_64 manylinux_2_17_x86_64 musllinux_1_1_x86_64; do
    expect "pip takes the wheel for $platform" "$python" "$pip/pip" download -q --disable-pip-version-check --no-index --no-deps --find-links build \
        --only-binary :all: --platform $platform --python-version 3.9 -d "$dir" pycap-profiler
done

# ---- in a venv: the commands, a test session, a block of a program ----
if [ -e "$pip" ]; then
    "$python" -m venv --without-pip --system-site-packages "$dir/venv"
    chmod 755 "$dir"
    expect "venv: pip install" "$dir/venv/bin/python" "$pip/pip" install -q --disable-pip-version-check --no-index "$wheel"
    expect "venv: pycap --version" "$dir/venv/bin/pycap" --version
    expect "venv: python -m" "$dir/venv/bin/python" -m pycap_profiler --version
    expect "venv: without privilege it says what to type after sudo" sh -c \
        'setpriv --reuid 65534 --clear-groups "$0" record -a 2>&1 | grep -F "sudo $0 "' "$dir/venv/bin/pycap"
    cat >"$dir/test_spin.py" <<'END'
import sys
import time

from pycap_profiler import recorder


def spin():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass


def test_spin():
    spin()


if __name__ == "__main__":
    with recorder(sys.argv[1], "-F", "499"):
        spin()
END
    expect "venv: pytest --pycap" "$dir/venv/bin/python" -m pytest -q -p no:cacheprovider --rootdir "$dir" --pycap-output "$dir/session.bin" --pycap "$dir/test_spin.py"
    expect "venv: the session" sh -c '"$0" "$1" -f folded | grep -q "test_spin (.*spin ("' "$dir/venv/bin/pysym" "$dir/session.bin"
    expect "venv: with recorder()" "$dir/venv/bin/python" "$dir/test_spin.py" "$dir/block.bin"
    expect "venv: the block" sh -c '"$0" "$1" -f folded | grep -q "spin ("' "$dir/venv/bin/pysym" "$dir/block.bin"
    # A recorder ends with the program that began it, also where that is killed.
    cat >"$dir/killed.py" <<'END'
import os, signal, sys
from pycap_profiler import recorder
with recorder(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
END
    expect "venv: with recorder(), killed" sh -c '"$0" "$1" "$2" || true; i=0; while pgrep -f "record.*-o $2" >/dev/null; do i=$((i + 1)) && [ $i -lt 300 ] && sleep 0.1 || exit 1; done' \
        "$dir/venv/bin/python" "$dir/killed.py" "$dir/killed.bin"
    mkdir "$dir/nobody" && chown 65534 "$dir/nobody"
    expect "venv: with recorder(), without privilege" setpriv --reuid 65534 --clear-groups \
        "$dir/venv/bin/python" "$dir/test_spin.py" "$dir/nobody/block.bin"
    expect "venv: the block" sh -c '"$0" "$1" -f folded | grep -q "spin ("' "$dir/venv/bin/pysym" "$dir/nobody/block.bin"
fi

[ "${1-}" != --all ] || [ ! -e "$pip" ] || expect "the jobs of docs/ci.md" /usr/bin/python3 tests/ci_jobs.py build "$pip"

# spread ROOT TREE: TREE is that root tree, whose changes are thrown away.
spread() {
    mkdir -p "$dir/over/$2" "$dir/work/$2" "$dir/$2"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$dir/over/$2,workdir=$dir/work/$2" "$dir/$2"
    trees+=("$dir/$2")
    cp testdata/programs/proportions.py "$dir/$2/"
    mkdir -p "$dir/$2/tmp"
}

# What pysym's folded stacks say of each function is what the program's own clock said, as exactly as so many samples can.
cat >"$dir/compare.py" <<'END'
import json, math, re, sys
told = json.loads(open(sys.argv[1]).read().splitlines()[-1])
found, count = dict.fromkeys(told, 0), 0
for line in open(sys.argv[2]):
    stack, samples = line.rsplit(" ", 1)
    for name in told:
        if re.search(rf";{name} \(", stack):
            found[name] += int(samples)
            count += int(samples)
assert count > 200, f"{count} samples"
for name, seconds in told.items():
    share = seconds / sum(told.values())
    assert abs(found[name] / count - share) < 5 * math.sqrt(share * (1 - share) / count) + 0.01, (told, found)
END
# answer TREE WHAT PYCAP PYSYM PYTHON...: records the program in that tree, or outside where no Python is given, and compares.
answer() {
    local tree=$dir/$1 what="$1: $2" pycap=$3 pysym=$4 program
    shift 4
    rm -f "$tree/t.bin" "$tree/told" "$tree/folded"
    if [ $# -gt 0 ]; then
        expect "$what: record" in_root "$tree" sh -c '"$@" >/told' sh "$pycap" record -q -F 499 -o /t.bin -- "$@" /proportions.py 1
    else
        "$python" testdata/programs/proportions.py 2 >"$tree/told" &
        program=$!
        expect "$what: record" in_root "$tree" "$pycap" record -q -F 499 -o /t.bin -p $program
        wait $program
    fi
    expect "$what: pysym" in_root "$tree" sh -c '"$0" /t.bin -f folded >/folded' "$pysym"
    expect "$what: the program's own clock" "$python" "$dir/compare.py" "$tree/told" "$tree/folded"
}

# by_tarball TREE [PYTHON...], by_wheel TREE PYTHON...
by_tarball() {
    tar -xzf "$tarball" -C "$dir/$1"
    expect "$1: ./install.sh" in_root "$dir/$1" sh "/pycap-$version-linux-x86_64/install.sh"
    answer "$1" tarball /usr/local/bin/pycap /usr/local/bin/pysym "${@:2}"
    expect "$1: ./install.sh --remove" in_root "$dir/$1" "/pycap-$version-linux-x86_64/install.sh" --remove
    expect "$1: nothing is left" sh -c '! find "$0" -name "py[cs]*" -type f | grep .' "$dir/$1/usr/local"
}
by_wheel() {
    local folder
    [ -e "$pip" ] || return 0
    cp "$pip" "$wheel" "$dir/$1/"
    # Debian's Python 3.9 has what pip needs in a package of its own.
    [ "$1" != bullseye ] || fetch_deb bullseye python3-distutils "$dir/$1"
    expect "$1: pip install" in_root "$dir/$1" "${@:2}" "/${pip##*/}/pip" install -q --no-index --root-user-action=ignore --no-warn-script-location \
        --break-system-packages "/${wheel##*/}"
    expect "$1: python -m" in_root "$dir/$1" "${@:2}" -m pycap_profiler --version
    folder=$(in_root "$dir/$1" "${@:2}" -c 'import os, pycap_profiler; print(os.path.dirname(pycap_profiler.program("pycap")))') || return 0
    answer "$1" wheel "$folder/pycap" "$folder/pysym" "${@:2}"
}

# ---- root trees ----
if root_tree bookworm-apt bookworm --variant=apt --include=man-db; then
    spread "$cache/roots/bookworm-apt" no-python
    by_tarball no-python
    sh docs/build/deps.sh rpm cpio >&2
    expect "rpm -i" rpm --root "$dir/no-python" --ignorearch --nodeps -i "build/pycap-$version-1.x86_64.rpm" "build/pysym-$version-1.x86_64.rpm"
    expect "rpm -V" rpm --root "$dir/no-python" --nodeps -V pycap pysym
    answer no-python rpm /usr/bin/pycap /usr/bin/pysym
    expect "rpm -e" rpm --root "$dir/no-python" --nodeps -e pycap pysym
    expect "rpm: nothing is left" sh -c '! find "$0/usr" -name "*py[cs][ay][mp]*" | grep .' "$dir/no-python"
    expect "rpm2cpio" sh -c 'rpm2cpio "$0" | cpio -t --quiet 2>&1 | grep -q "^./usr/bin/pysym$"' "build/pysym-$version-1.x86_64.rpm"
else
    skipped "no root tree of bookworm"
fi
suites=sid
[ "${1-}" != --all ] || suites="bullseye bookworm trixie sid"
for suite in $suites; do
    while read -r name _ root; do
        [ "$name" != SKIPPED ] || { skipped "$suite: $root"; continue; }
        spread "$cache/roots/$suite" "$suite"
        read -r root _ _ interpreter <<<"$root"
        by_tarball "$suite" "$interpreter"
        by_wheel "$suite" "$interpreter"
        break
    done < <(tests/interpreters.sh "$suite")
done
# musl and busybox, as Alpine is made of, with the interpreter of the image that wheels for it are built in.
name=musllinux-3.14
if tests/released.sh $name >"$dir/musl.log" 2>&1 && sh docs/build/deps.sh busybox-static >"$dir/musl.log" 2>&1; then
    musl=$dir/musl-tree
    mkdir -p "$musl/bin" "$musl/lib" "$musl/usr" "$musl/proc" "$musl/sys" "$musl/dev"
    cp "$(command -v busybox)" "$musl/bin/busybox"
    for applet in sh find cp sed mkdir rm chmod cat; do ln -s busybox "$musl/bin/$applet"; done
    cp "$cache/released/$name/usr/lib/ld-musl-x86_64.so.1" "$musl/lib/"
    cp -RL "$cache/released/$name/app" "$musl/app"
    spread "$musl" musl
    by_tarball musl /app/python3.14
    # That interpreter has neither pip nor zlib: what pip would lay out.
    "$python" -m zipfile -e "$wheel" "$dir/musl/opt"
    chmod 755 "$dir/musl/opt/pycap_profiler-$version.data/scripts"/*
    answer musl wheel "/opt/pycap_profiler-$version.data/scripts/pycap" "/opt/pycap_profiler-$version.data/scripts/pysym" /app/python3.14
else
    skipped "musl: $(tail -n 1 "$dir/musl.log")"
fi
report
