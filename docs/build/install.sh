#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs pycap and pysym from this folder below PREFIX, /usr/local unless told; enables nothing.
# usage: install.sh [--remove] [PREFIX]     with sudo where PREFIX wants it
set -eu
umask 022
usage() { sed -n 's/^# //; 3,4p' "$0" >&2 && exit 2; }
remove=
[ "${1-}" != --remove ] || { remove=1 && shift; }
[ $# -le 1 ] || usage
case ${1-} in -*) usage ;; esac
from=$(cd "$(dirname "$0")" && pwd)
[ -n "$remove" ] || mkdir -p "${1:-/usr/local}"
prefix=$(cd "${1:-/usr/local}" && pwd)
# Units and pages name it, in their own ways.
case $prefix in *[!A-Za-z0-9/._+@~-]*) echo "$prefix: a folder with such characters in its name cannot be used" >&2 && exit 2 ;; esac
cd "$from"
if [ -n "$remove" ]; then
    find bin lib share -type f -exec sh -c 'for file; do rm -f "$0/$file"; done' "$prefix" {} +
    # Folders that are empty now, those of the packages alone.
    find share/doc/pycap -depth -type d -exec sh -c 'for folder; do rmdir "$0/$folder" 2>/dev/null; done; true' "$prefix" {} +
    exit
fi
for file in $(find bin lib share -type f); do # names without blanks
    mkdir -p "$prefix/${file%/*}"
    rm -f "$prefix/$file" # what runs stays as it is
    case $file in
    bin/*) cp "$file" "$prefix/$file" && chmod 755 "$prefix/$file" || exit ;;
    # What names installed files names them where they are.
    *) sed "s,/usr/\(bin/py[cs]\|share/doc/pycap\),$prefix/\1,g" "$file" >"$prefix/$file" || exit ;;
    esac
done
"$prefix/bin/pycap" --version
echo "Installed below $prefix. Next: sudo $prefix/bin/pycap info"
