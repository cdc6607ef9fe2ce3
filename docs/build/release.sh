#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes all that a release consists of, out of a clean clone of the last commit, in build/release/VERSION: source, programs as tarball,
# wheel, RPMs, Debian packages and container image, what is inside them, the sources of libraries whose license asks for them, notes, and
# SHA256SUMS of all, ready to be signed. The same commit gives the same bytes. It publishes nothing. docs/release.md
# usage: release.sh VERSION     SOURCE_DATE_EPOCH: the date of all; URL: where all this is to be found, for wheel, RPMs, image and THIRD-PARTY
set -eu
cd "$(dirname "$0")/../.."
umask 022
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL CC AR CROSS PKG_CONFIG CPPFLAGS CFLAGS LDFLAGS SANITIZE TSAN FUZZ V OUT prefix DESTDIR
export LC_ALL=C.UTF-8 TZ=UTC
version=$1 top=$PWD
clone=$top/build/release/clone out=$top/build/release/$1
changed=$(git status --porcelain)
[ -z "$changed" ] || { printf 'These changes are not in a commit, and a release is made of commits:\n%s\n' "$changed" >&2; exit 1; }
rm -rf "$clone" "$out"
mkdir -p "$out"
git clone -q . "$clone"
cd "$clone"
goals="tarball wheel rpm image deb"
# shellcheck disable=SC2086
make $goals
mv build/*"$version"*.tar.gz build/*.whl build/*.rpm build/*-oci-*.tar build/*.deb build/*.dsc build/*.debian.tar.xz build/*.orig.tar.xz "$out"
cp build/static/usr/share/doc/pycap/pycap.cdx.json "$out/pycap-$version.cdx.json"

mkdir sources
# shellcheck disable=SC2046
sh docs/build/debian-sources.sh "$clone/sources" --download-only $(/usr/bin/python3 docs/build/components.py --sources build/static)
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu --transform "s,^sources,pycap-$version-third-party-sources," \
    -cf "$out/pycap-$version-third-party-sources.tar" sources
{
    printf '# pycap %s\n' "$version"
    sed -n "/^$version /,/^[0-9]/{/^[0-9]/d;p}" CHANGES
    sed "1,/^## Verify/d; s/VERSION/$version/g" docs/release.md | sed '/^## /,$d' | sed '1i ## Verify'
} >"$out/NOTES.md"
cd "$out"
sha256sum -- * >SHA256SUMS.new
mv SHA256SUMS.new SHA256SUMS
rm -rf "$clone"
echo "  RELEASE build/release/$version: $(wc -l <SHA256SUMS) files, $(du -sh . | cut -f1)"
