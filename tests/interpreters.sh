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
[ "$(id -u)" = 0 ] || skip "needs root to make root trees"
sh "$tests/deps.sh" mmdebstrap >&2 || skip "mmdebstrap can't be installed"
[ "$(uname -m)" = x86_64 ] || skip "root trees are made for x86-64 only"

tree() { # SUITE PACKAGES
    local root=$cache/roots/$1 mirror option options=()
    mkdir -p "$cache/roots"
    cache_lock "roots/$1"
    [ -e "$root/.complete" ] && return
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || return 1
    say "  ROOT    $1"
    rm -rf "$root"
    # mmdebstrap's apt does not read this machine's settings: proxies, and whether a mirror may be out of date.
    while read -r option; do
        options+=(--aptopt="$option")
    done < <(apt-config dump Acquire | grep -E '^Acquire::(Check-|https?::)')
    nice mmdebstrap --quiet --mode=root --variant=essential --include="$2" --aptopt='APT::Sandbox::User "root"' \
        --aptopt='Acquire::Retries "3"' "${options[@]}" --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$1" "$root" "deb $mirror $1 main" 2>"$root.log" </dev/null || return 1
    touch "$root/.complete"
}

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
    if ! tree $suite "$packages"; then
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
