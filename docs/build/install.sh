#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs pycap and pysym from this folder below PREFIX, /usr/local unless told; enables nothing.
# usage: install.sh [--remove] [PREFIX]     with sudo where PREFIX wants it
set -eu
from=$(cd "$(dirname "$0")" && pwd)
remove=
case ${1-} in
--remove) remove=1 && shift ;;
-*) sed -n 's/^# //; 3,4p' "$0" && exit 2 ;;
esac
mkdir -p "${1:-/usr/local}"
prefix=$(cd "${1:-/usr/local}" && pwd)
cd "$from"
find bin lib share -type f | while read -r file; do
    rm -f "$prefix/$file" # what runs stays as it is
    [ -z "$remove" ] || continue
    mkdir -p "$prefix/${file%/*}"
    case $file in
    bin/*) cp "$file" "$prefix/$file" ;;
    # What names installed files names them where they are.
    *) sed "s,/usr/\(bin/py[cs]\|share/doc/pycap\),$prefix/\1,g" "$file" >"$prefix/$file" && chmod 644 "$prefix/$file" ;;
    esac
done
if [ -n "$remove" ]; then
    [ ! -d "$prefix/share/doc/pycap" ] || find "$prefix/share/doc/pycap" -depth -type d -exec rmdir {} +
    exit
fi
"$prefix/bin/pycap" --version
echo "Installed below $prefix. Next: sudo $prefix/bin/pycap info"
