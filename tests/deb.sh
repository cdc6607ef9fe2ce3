#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package in two places, which has to give the same bytes, and installs, runs and removes it in a
# clean Debian 12. usage: deb.sh      as root
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
make all
rm -f build/*.deb
make deb >"$dir/make.log" 2>&1 || { tail -n 20 "$dir/make.log"; exit 1; }
deb=$(echo build/pycap_*.deb)

# Elsewhere, at another time of day, by a user with other habits: the same files, built anew.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
mkdir -p "$dir/elsewhere"
git ls-files -coz --exclude-standard | xargs -0 cp --parents -t "$dir/elsewhere"
(
    cd "$dir/elsewhere"
    umask 077
    export SOURCE_DATE_EPOCH TZ=Asia/Tokyo LC_ALL=C LANG=de_DE.UTF-8
    make deb >"$dir/make.log" 2>&1
) || tail -n 20 "$dir/make.log"
expect "the same bytes from another folder" cmp "$deb" "$dir/elsewhere/$deb"

if command -v lintian >/dev/null; then
    expect "lintian finds no error" lintian --allow-root --fail-on error "$deb"
else
    skipped "lintian is not installed"
fi

root=$dir/root
cp -a "$cache/roots/bookworm-apt" "$root"
cp "$deb" "$root/tmp/pycap.deb"
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
if ! chroot "$root" apt-get -qy -o Acquire::Retries=3 --no-install-recommends --download-only install /tmp/pycap.deb >"$dir/download.log" 2>&1 </dev/null &&
    grep -qE "$unreachable" "$dir/download.log"; then
    skipped "what pycap depends on cannot be fetched: $(grep '^E: ' "$dir/download.log" | head -n 1)"
    report
    exit
fi
expect "apt-get install ./pycap.deb" chroot "$root" apt-get -qy --no-install-recommends install /tmp/pycap.deb
expect "dpkg --verify" sh -c '! chroot "$1" dpkg --verify pycap | grep .' sh "$root"
expect "pycap --version" in_root "$root" pycap --version
expect "pycap info" in_root "$root" pycap info
expect "pysym --help" in_root "$root" pysym --help
for page in pycap pysym; do
    expect "man -w $page" chroot "$root" man -w $page
    expect "man $page" sh -c 'chroot "$1" man "$2" | grep -q "^EXIT STATUS"' sh "$root" $page
done
expect "completion" chroot "$root" bash -c '
    . /usr/share/bash-completion/completions/pysym && COMP_WORDS=(pysym -f spee) COMP_CWORD=2 &&
    _pysym pysym && [ "${COMPREPLY[*]}" = speedscope ]'
expect_recording "$root" pycap
expect "both units" chroot "$root" test -f /lib/systemd/system/pycap.service -a -f /lib/systemd/system/pycap-push.service
expect "nothing is enabled" sh -c '! ls "$1"/etc/systemd/system/*/pycap*' sh "$root"
expect "user and group of the units" cmp docs/systemd/pycap.sysusers.conf "$root/usr/lib/sysusers.d/pycap.conf"
[ ! -e "$root/trace.bin" ] || expect "pysym in that root" in_root "$root" pysym /trace.bin -f top
chroot "$root" dpkg -L pycap >"$dir/files"
expect "apt-get purge" chroot "$root" apt-get -qy purge pycap
left=$(while read -r path; do [ -d "$root$path" ] || [ ! -e "$root$path" ] || echo "$path"; done <"$dir/files")
expect "nothing is left" [ -z "$left" ]
expect "no folder of it is left" [ ! -e "$root/usr/share/doc/pycap" ]
report
