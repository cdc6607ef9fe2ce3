#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's CPythons, each into a root tree of its own in the cache (another libc, another layout), and
# prints a line for each: NAME VERSION ROOT COMMAND. Recording COMMAND records it as in a container.
# usage: interpreters.sh [SUITE...]    bullseye (3.9), trixie (3.13), sid (3.14 and 3.15); all without a name
# A tree that can't be made gives "SKIPPED NAME: reason" in place of its lines.
# Exit: 0, 1 failed, 2 usage, 77 none can be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

[ $# -gt 0 ] || set -- bullseye trixie sid
root_trees_or_skip

failed=0
for suite; do
    case $suite in
    bullseye) versions=3.9 ;;
    trixie) versions=3.13 ;;
    sid) versions="3.14 3.15" ;;
    *) say "unknown suite $suite: bullseye, trixie or sid"; exit 2 ;;
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
        if number=$(chroot "$root" "/usr/bin/python$version" -c 'import sys; print(sys.version.split()[0])'); then
            echo "py$version $number $root chroot $root /usr/bin/python$version"
        else
            say "python$version of $suite does not run"
            failed=1
        fi
    done
done
exit $failed
