#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages, asks lintian, and installs, runs, upgrades and removes them in a clean Debian 12. With --twice it
# builds them in a second place, too, which has to give the same bytes. usage: deb.sh [--twice]      as root
# Exit: 0, 1 failed, 77 cannot run here.
# shellcheck disable=SC2016,SC2154
set -euo pipefail
. "$(dirname "$0")/debian.sh"
cd "$checkout"
. tests/packaged.sh

root_trees_or_skip
root_tree bookworm-apt bookworm --variant=apt --include=man-db ||
    skip "no root tree: $(tail -n 1 "$cache/roots/bookworm-apt.log" 2>/dev/null)"
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rm -f build/*.deb
# What is only looked at is built faster: without optimization and without packages of debug symbols.
[ "${1-}" = --twice ] || export DEB_BUILD_OPTIONS="noopt noautodbgsym"
make deb >"$dir/make.log" 2>&1 || { tail -n 20 "$dir/make.log"; exit 1; }
version=$(dpkg-parsechangelog -l docs/debian/changelog -S Version)
changes=build/pycap_${version}_amd64.changes
pysym=$(echo build/deb/pycap-*/build/pysym)

if [ "${1-}" = --twice ]; then
    # Elsewhere, at another time of day, by a user with other habits: the same files, built anew.
    mkdir -p "$dir/elsewhere"
    git ls-files -coz --exclude-standard | xargs -0 cp --parents -t "$dir/elsewhere"
    (
        cd "$dir/elsewhere"
        umask 077
        export TZ=Asia/Tokyo LC_ALL=C LANG=de_DE.UTF-8 CFLAGS=-O0
        make deb >"$dir/make.log" 2>&1
    ) || tail -n 20 "$dir/make.log"
    # All but .buildinfo, which says where and when, and .changes, which has its sum.
    for file in $(sed -n '/^Files:/,$s/^ .* //p' "$changes" | grep -v buildinfo); do
        expect "the same bytes from another folder: $file" cmp "build/$file" "$dir/elsewhere/build/$file"
    done
fi

sh docs/build/deps.sh lintian >&2 || true
if command -v lintian >/dev/null; then
    expect "lintian finds no error and warns of nothing" lintian --allow-root --fail-on error,warning "$changes"
else
    skipped "lintian is not installed"
fi

root=$dir/root
cp -a "$cache/roots/bookworm-apt" "$root"
for package in pycap pysym; do
    cp "build/${package}_${version}_amd64.deb" "$root/tmp/$package.deb"
done
expect "no pycap before" sh -c '! chroot "$1" sh -c "command -v pycap"' sh "$root"
# What it depends on comes from an archive that may be out of reach for a moment.
unreachable='^E: (Failed to fetch|Some index files failed)|Could not (connect|resolve)|Connection (failed|timed out)|Temporary failure|Hash Sum mismatch'
if chroot "$root" apt-get -q -o APT::Update::Error-Mode=any -o Acquire::Retries=3 update >"$dir/update.log" 2>&1 </dev/null; then
    ok "apt-get update"
elif grep -qE "$unreachable" "$dir/update.log"; then
    skipped "the archive's lists cannot be fetched: $(grep '^E: ' "$dir/update.log" | head -n 1)"
    report
    exit
else
    failure "apt-get update"
    tail -n 20 "$dir/update.log"
fi
if ! chroot "$root" apt-get -qy -o Acquire::Retries=3 --no-install-recommends --download-only install /tmp/pycap.deb /tmp/pysym.deb >"$dir/download.log" 2>&1 </dev/null &&
    grep -qE "$unreachable" "$dir/download.log"; then
    skipped "what the packages depend on cannot be fetched: $(grep '^E: ' "$dir/download.log" | head -n 1)"
    report
    exit
fi

expect "apt-get install ./pycap.deb" chroot "$root" apt-get -qy --no-install-recommends install /tmp/pycap.deb
expect "pycap needs no pysym" sh -c '! chroot "$1" sh -c "command -v pysym"' sh "$root"
expect "pycap --version" in_root "$root" pycap --version
expect_recording "$root" pycap
# From a package of before, with both programs, whose files pysym takes over.
mkdir -p "$dir/old/DEBIAN" "$dir/old/usr/bin" "$dir/old/lib/systemd/system"
printf 'Package: pycap\nVersion: 0.1.0-1\nArchitecture: amd64\nMaintainer: a <a@b.c>\nDescription: both\n' >"$dir/old/DEBIAN/control"
touch "$dir/old/usr/bin/pycap" "$dir/old/usr/bin/pysym" "$dir/old/lib/systemd/system/pycap-push.service"
dpkg-deb --root-owner-group --build "$dir/old" "$root/tmp/old.deb" >/dev/null
expect "dpkg -i the package of before" chroot "$root" dpkg -i /tmp/old.deb
expect "apt-get install ./pycap.deb ./pysym.deb" chroot "$root" apt-get -qy --no-install-recommends install /tmp/pysym.deb /tmp/pycap.deb
expect "dpkg --verify" sh -c '! chroot "$1" dpkg --verify pycap pysym | grep .' sh "$root"
expect "pycap info" in_root "$root" pycap info
expect "pysym --help" in_root "$root" pysym --help
for page in pycap pysym; do
    expect "man -w $page" chroot "$root" man -w $page
    expect "man $page" sh -c 'chroot "$1" man "$2" | grep -q "^EXIT STATUS"' sh "$root" $page
    chroot "$root" dpkg -L $page | sort >"$dir/$page.files"
    gzip -dc "$root/usr/share/man/man1/$page.1.gz" | sed 's/\\&//g; s/\\-/-/g' | grep -oE '/usr/share/doc/[a-z/.-]*[a-z]' | sort -u >"$dir/$page.named"
    expect "the documents that man $page names" sh -c '[ -s "$1" ] && ! comm -23 "$1" "$2" | grep .' sh "$dir/$page.named" "$dir/$page.files"
    expect "completion of $page" chroot "$root" bash -c '
        . "/usr/share/bash-completion/completions/$0" && COMP_WORDS=(pysym -f spee) COMP_CWORD=2 &&
        _pysym pysym && [ "${COMPREPLY[*]}" = speedscope ]' $page
done
expect "both units" chroot "$root" test -f /lib/systemd/system/pycap.service -a -s /lib/systemd/system/pycap-push.service
expect "nothing is enabled" sh -c '! ls "$1"/etc/systemd/system/*/pycap*' sh "$root"
expect "user and group of the units" cmp docs/systemd/pycap.sysusers.conf "$root/usr/lib/sysusers.d/pycap.conf"
[ ! -e "$root/trace.bin" ] || expect "pysym in that root" in_root "$root" pysym /trace.bin -f top
expect "apt-get purge" chroot "$root" apt-get -qy purge pycap pysym
left=$(cat "$dir"/*.files | while read -r path; do [ -d "$root$path" ] || [ ! -e "$root$path" ] || echo "$path"; done)
expect "nothing is left" [ -z "$left" ]
expect "no folder of it is left" [ ! -e "$root/usr/share/doc/pycap" ]
report
