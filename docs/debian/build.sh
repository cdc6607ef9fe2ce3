#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds build/pycap_VERSION_amd64.deb: compiles anew and apart, with Debian's flags, installs into a tree, packs the tree.
# The same source gives the same bytes: all times are SOURCE_DATE_EPOCH, by default that of the commit.
# usage: build.sh VERSION      DEBFULLNAME, DEBEMAIL: who is named as the maintainer
set -eu
cd "$(dirname "$0")/../.."
version=$1-1
maintainer="${DEBFULLNAME:-The pycap authors} <${DEBEMAIL:-pycap@example.org}>"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGES)}"
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC DEB_BUILD_MAINT_OPTIONS="hardening=+all reproducible=-fixfilepath"
umask 022
unset STATIC SANITIZE FUZZ MAKEFLAGS MAKEOVERRIDES MFLAGS

work=build/deb
root=$work/root
doc=$root/usr/share/doc/pycap
rm -rf "$work"
mkdir -p "$work/debian" "$root/DEBIAN" "$doc"
make --no-print-directory -j"$(nproc)" OUT=$work/out CFLAGS="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS)" \
    LDFLAGS="$(dpkg-buildflags --get LDFLAGS)" DESTDIR="$PWD/$root" prefix=/usr install
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
gzip -9n "$root"/usr/share/man/man1/*.1
# Units are there to be enabled by who wants them; installing records nothing.
for unit in docs/*.service docs/*/*.service; do
    [ -e "$unit" ] || continue
    mkdir -p "$root/lib/systemd/system"
    sed 's,/usr/local/bin/,/usr/bin/,g' "$unit" >"$root/lib/systemd/system/$(basename "$unit")"
done
for conf in docs/systemd/*.sysusers.conf; do
    install -D -m 644 "$conf" "$root/usr/lib/sysusers.d/$(basename "$conf" .sysusers.conf).conf"
done
install -m 755 docs/debian/postinst "$root/DEBIAN/postinst"

sed "s/@MAINTAINER@/$maintainer/" docs/debian/control >"$work/debian/control"
cat >"$work/debian/changelog" <<EOF
pycap ($version) unstable; urgency=medium

  * Package of this version; its changes are in changelog.gz.

 -- $maintainer  $(date -R -d "@$SOURCE_DATE_EPOCH")
EOF
install -m 644 docs/debian/copyright "$doc/copyright"
gzip -9nc CHANGES >"$doc/changelog.gz"
gzip -9nc "$work/debian/changelog" >"$doc/changelog.Debian.gz"

(
    cd "$work"
    dpkg-shlibdeps -Tdebian/substvars -eroot/usr/bin/pycap -eroot/usr/bin/pysym
    dpkg-gencontrol -ppycap -Tdebian/substvars -fdebian/files -Proot -Oroot/DEBIAN/control
    cd root
    find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums
)
dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "build/pycap_${version}_amd64.deb"
