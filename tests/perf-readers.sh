#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the programs that judge perf.data files and that Debian 12 lacks, or has only with a desktop. Each is unpacked,
# not installed, into a root tree in the cache, with the libraries that it needs:
#
#   sid-perf   Debian sid's perf, and binutils, whose addr2line it asks for lines of files that are in a build-id cache
#   hotspot    hotspot-perfparser of Debian 12, which reads perf.data for hotspot and needs no display
#
# Prints a line for each: NAME VERSION PROGRAM, or "SKIPPED NAME: reason".
# usage: perf-readers.sh [NAME...]
# Exit: 0, 1 failed, 2 usage, 77 none can be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

[ $# -gt 0 ] || set -- sid-perf hotspot
[ "$(id -u)" = 0 ] || skip "needs root to make root trees"
[ "$(uname -m)" = x86_64 ] || skip "root trees are made for x86-64 only"

# fill FOLDER SUITE ALONE PACKAGE...: unpacks the packages and all that they depend on, and the package ALONE, "" for
# none, without what it depends on.
fill() {
    local folder=$1 suite=$2 alone=$3 package
    shift 3
    mkdir -p "$folder/packages/partial"
    suite_apt "$suite" apt-get -qq --no-install-recommends -y --download-only -oDir::Cache::archives="$folder/packages" \
        install base-files coreutils dash "$@" >&2 || return 1
    [ -z "$alone" ] || (cd "$folder/packages" && suite_apt "$suite" apt-get -qq download "$alone" >&2) || return 1
    # base-files first, which has the links /lib and /bin where they are links.
    for package in "$folder"/packages/base-files_*.deb "$folder"/packages/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar x -C "$folder" --keep-directory-symlink --exclude='./usr/share/doc/*' \
            --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' || return 1
    done
    rm -rf "$folder/packages"
}

# unpack NAME SUITE ALONE PACKAGE...: fills a root tree; nothing to do if it is there.
unpack() {
    local root=$cache/roots/$1 new
    mkdir -p "$cache/roots"
    cache_lock "roots/$1"
    [ ! -e "$root/.complete" ] || return 0
    say "  ROOT    $1"
    new=$(mktemp -d "$root.XXXXXX")
    chmod 755 "$new"
    shift
    fill "$new" "$@" || { rm -rf "$new"; return 1; }
    rm -rf "$root"
    mv "$new" "$root"
    touch "$root/.complete"
}

failed=0 made=0
# reader NAME PROGRAM: says what the program in the root tree is.
reader() {
    local version
    if version=$(chroot "$cache/roots/$1" "$2" --version); then
        echo "$1 ${version##* } $cache/roots/$1$2"
        made=1
    else
        say "$1 does not run"
        failed=1
    fi
}

for name; do
    case $name in
    sid-perf)
        if unpack sid-perf sid "" linux-perf binutils; then
            reader sid-perf /usr/bin/perf
        else
            echo "SKIPPED sid-perf: its packages cannot be fetched"
        fi ;;
    hotspot)
        if unpack hotspot bookworm hotspot libqt5core5a libqt5network5 libdw1; then
            reader hotspot /usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser
        else
            echo "SKIPPED hotspot: its packages cannot be fetched"
        fi ;;
    *) say "unknown reader $name: sid-perf or hotspot"; exit 2 ;;
    esac
done
[ $failed = 0 ] || exit 1
[ $made = 1 ] || exit 77
