#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs pycap and pysym from this folder below PREFIX, /usr/local unless told; enables nothing.
# usage: ./install.sh [PREFIX]     ./install.sh --remove [PREFIX]     with sudo where PREFIX wants it
set -eu
cd "$(dirname "$0")"
remove=
[ "${1-}" != --remove ] || { remove=1 && shift; }
prefix=${1:-/usr/local}
find bin lib share -type f | while read -r file; do
    [ -z "$remove" ] || { rm -f "$prefix/$file" && continue; }
    mkdir -p "$prefix/${file%/*}"
    rm -f "$prefix/$file" # what runs stays as it is
    case $file in
    bin/*) cp "$file" "$prefix/$file" ;;
    # What names installed files names them where they are.
    *) sed "s,/usr/\(bin/py[cs]\|share/doc/pycap\),$prefix/\1,g" "$file" >"$prefix/$file" && chmod 644 "$prefix/$file" ;;
    esac
done
[ -n "$remove" ] || "$prefix/bin/pycap" --version
