#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds RPMs of the programs without libraries: they need nothing, so that one of each serves every distribution. What each has is
# what its Debian package has. The same source gives the same bytes.
# usage: rpm.sh VERSION TREE TARGET     TREE: what is installed below /usr; SOURCE_DATE_EPOCH: the date of all; URL: of the source
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$2" && pwd) target=$(cd "$3" && pwd)
sh "$here/deps.sh" rpm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in pycap pysym; do
    # Files and folders in Debian's words, one a line. A manual page is packed by rpm or is not: it is named as a pattern.
    sed -E 's,^(lib/systemd),/usr/\1,; s,^usr,/usr,; s,(sysusers.d)$,\1/*,; s,(\.1)$,\1*,' "$here/../debian/$package.install" >"$work/$package.files"
    printf '%s\n' '%dir /usr/share/doc/pycap' /usr/share/doc/pycap/THIRD-PARTY /usr/share/doc/pycap/pycap.cdx.json '/usr/share/doc/pycap/LICENSE*' /usr/share/doc/pycap/CHANGES >>"$work/$package.files"
done
bill=$tree/share/doc/pycap/pycap.cdx.json
components() { /usr/bin/python3 "$here/components.py" "$@"; }
for package in pycap pysym; do
    {
        echo "License: $(components --license "$bill" $package)"
        [ -z "${URL-}" ] || [ $package = pysym ] || echo "URL: $URL"
        components --inside "$bill" $package | sed "/^py[cs]/d; s/.*/Provides: bundled(&)/"
    } >"$work/$package.facts"
done
sed "/^# pycap.facts/r $work/pycap.facts
    /^# pysym.facts/r $work/pysym.facts" "$here/pycap.spec" >"$work/pycap.spec"
rpmbuild -bb --quiet --build-in-place --noprep --define "_topdir $work/rpm" --define "_rpmdir $target" --define "_rpmfilename %%{name}-%%{version}-%%{release}.%%{arch}.rpm" \
    --define "version_of_source $1" --define "tree $tree" --define "lists $work" --define "_buildhost localhost" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" --define "source_date_epoch_from_changelog 0" \
    "$work/pycap.spec" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
ls "$target"/*-"$1"-1.*.rpm | sed "s,^,  RPM     ,"
