#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's CPythons, each into a root tree of its own in the cache (another libc, another layout), and
# prints a line for each: NAME VERSION ROOT COMMAND. Recording COMMAND records it as in a container.
# usage: interpreters.sh [SUITE...]    bullseye (3.9), trixie (3.13), sid (3.14 and 3.15), which are all without a name; bookworm (3.11)
# A tree that can't be made gives "SKIPPED NAME: reason" in place of its lines. A tree also has the header of CPython's
# table of offsets, from 3.13 on.
# Exit: 0, 1 failed, 2 usage, 77 none can be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

[ $# -gt 0 ] || set -- bullseye trixie sid
root_trees_or_skip

# Puts one file of a -dev package into a root tree: the header with struct _Py_DebugOffsets.
offsets_header() { # SUITE VERSION ROOT
    local header=usr/include/python$2/internal/pycore_debug_offsets.h dir status=0
    case $2 in
    3.9 | 3.11) return ;;
    3.13) header=usr/include/python$2/internal/pycore_runtime.h ;;
    esac
    [ ! -e "$3/$header" ] || return 0
    dir=$(mktemp -d)
    (cd "$dir" && suite_apt "$1" apt-get -qq download "libpython$2-dev" >&2 &&
        dpkg-deb --fsys-tarfile ./*.deb | tar x -C "$3" "./$header") || status=$?
    rm -rf "$dir"
    return $status
}

failed=0 made=0
for suite; do
    case $suite in
    bullseye) versions=3.9 ;;
    bookworm) versions=3.11 ;;
    trixie) versions=3.13 ;;
    sid) versions="3.14 3.15" ;;
    *) say "unknown suite $suite: bullseye, bookworm, trixie or sid"; exit 2 ;;
    esac
    packages=
    for version in $versions; do
        packages+=${packages:+,}python$version-minimal,libpython$version-stdlib
    done
    if ! root_tree "$suite" "$suite" --variant=essential --include="$packages" --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*'; then
        echo "SKIPPED $suite: no root tree: $(tail -n 1 "$cache/roots/$suite.log" 2>/dev/null)"
        continue
    fi
    for version in $versions; do
        root=$cache/roots/$suite
        offsets_header "$suite" "$version" "$root" || say "$suite: no header of python$version's table of offsets"
        if number=$(chroot "$root" "/usr/bin/python$version" -c 'import sys; print(sys.version.split()[0])'); then
            echo "py$version $number $root chroot $root /usr/bin/python$version"
            made=1
        else
            say "python$version of $suite does not run"
            failed=1
        fi
    done
done
[ $failed = 0 ] || exit 1
[ $made = 1 ] || exit 77
