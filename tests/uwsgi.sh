#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Debian's uWSGI and its Python plugin into the cache, beside this machine's own packages, and prints
# PROGRAM PLUGINS LIBRARIES: to run PROGRAM, point --plugins-dir at the second and LD_LIBRARY_PATH at the third.
# Exit: 0, 77 it can't be had here.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
root=$cache/uwsgi
libraries=$root/usr/lib/$(uname -m)-linux-gnu:$root/lib/$(uname -m)-linux-gnu
cache_lock uwsgi
if [ ! -e "$root/.complete" ]; then
    [ -n "$suite" ] && [ -e /etc/debian_version ] || skip "uWSGI is taken from Debian only"
    rm -rf "$root" && mkdir -p "$root/debs"
    # What it needs that is not here; a simulation installs nothing.
    packages=$(apt-get install -s --no-install-recommends uwsgi-core uwsgi-plugin-python3 libpython3-stdlib 2>/dev/null |
        awk '/^Inst/ { print $2 }')
    [ -n "$packages" ] || packages="uwsgi-core uwsgi-plugin-python3"
    # shellcheck disable=SC2086
    (cd "$root/debs" && suite_apt "$suite" apt-get -qq download $packages) >&2 || skip "uWSGI can't be fetched"
    for deb in "$root"/debs/*.deb; do
        dpkg-deb -x "$deb" "$root"
    done
    touch "$root/.complete"
fi
LD_LIBRARY_PATH=$libraries "$root/usr/bin/uwsgi-core" --version >/dev/null || skip "uWSGI does not run"
echo "$root/usr/bin/uwsgi-core" "$root/usr/lib/uwsgi/plugins" "$libraries"
