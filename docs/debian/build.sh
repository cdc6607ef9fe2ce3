#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages and their source into build/: lays the source out as Debian wants it, with this folder as
# debian/, in build/deb, and runs dpkg-buildpackage there. The same source gives the same bytes anywhere.
# usage: build.sh VERSION      DEBFULLNAME, DEBEMAIL: who is named as the maintainer
set -eu
cd "$(dirname "$0")/../.."
umask 022
# Nothing of a make that runs this, or of its user, but what dpkg-buildpackage documents.
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL CC AR CROSS PKG_CONFIG CPPFLAGS CFLAGS LDFLAGS WERROR STATIC SANITIZE TSAN FUZZ V OUT prefix DESTDIR
export LC_ALL=C.UTF-8 TZ=UTC

work=build/deb
tree=$work/pycap-$1
rm -rf "$work"
mkdir -p "$tree"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -coz --exclude-standard
else
    find . -path ./build -prune -o -type f -printf '%P\0'
fi | xargs -0 sh -c 'tree=$1; shift; for file; do [ ! -e "$file" ] || cp --parents "$file" "$tree"; done' sh "$tree"
chmod -R u=rwX,go=rX "$tree"

date=@${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l docs/debian/changelog -S Timestamp)}
tar -C "$work" --sort=name --mtime="$date" --owner=0 --group=0 --numeric-owner --format=gnu -c "pycap-$1" |
    xz -T1 >"$work/pycap_$1.orig.tar.xz"
cp -R "$tree/docs/debian" "$tree/debian"
rm "$tree/debian/build.sh"
if [ -n "${DEBEMAIL-}" ]; then
    maintainer="${DEBFULLNAME:-The pycap authors} <$DEBEMAIL>"
    sed -i "s/^Maintainer: .*/Maintainer: $maintainer/" "$tree/debian/control"
    sed -i "1,/^ -- /s/^ -- .*>/ -- $maintainer/" "$tree/debian/changelog"
fi
cd "$tree"
dpkg-buildpackage -us -uc -J"$(nproc)" >../log 2>&1 || { tail -n 30 ../log >&2; exit 1; }
cd ..
mv -f ./*.deb ./*.dsc ./*.tar.xz ./*.changes ./*.buildinfo ..
ls ../*"_$1"* | sed 's,^\.\./,  DEB     build/,'
