#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Packs the programs without libraries, with manual pages, documents, units and an install script. The same source gives the same bytes.
# usage: tarball.sh VERSION MACHINE TREE TARGET     TREE: what is installed below /usr; SOURCE_DATE_EPOCH: the date of all
set -eu
umask 022
name=pycap-$1-linux-$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$3" "$work/$name"
cp "$(dirname "$0")/install.sh" "$work/$name/install.sh"
chmod -R u=rwX,go=rX "$work/$name"
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -c "$name" | gzip -9n >"$4/$name.tar.gz"
echo "  TAR     $4/$name.tar.gz"
