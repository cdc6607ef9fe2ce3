#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages named that are missing, and says first which and how large they are. Nothing to do: says nothing.
# The seconds that it took are added to the file FETCHED, where that is set.
set -eu
missing=
for package; do
    case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true) in
    installed) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "These packages are missing and there is no apt-get to install them:$missing" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || { echo "Run as root, or install:$missing" >&2; exit 1; }
else
    sudo=
fi
# What it will cost, in apt-get's own words, where its lists are there already.
# shellcheck disable=SC2086
cost=$(LC_ALL=C apt-get --assume-no install --no-install-recommends $missing 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives.*/\1 to fetch/p; s/^After this operation, \(.*\) of additional disk space.*/, \1 on disk/p' | tr -d '\n')
echo "  APT     ${cost:+($cost) }${missing# }"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends $missing >"$log" 2>&1
}
began=$(date +%s)
installed() {
    [ -z "${FETCHED-}" ] || echo $(($(date +%s) - began)) >>"$FETCHED"
    exit 0
}
install && installed
# The archive may be out of reach for a moment, or change while it is read.
for pause in 0 10 30; do
    sleep $pause
    $sudo apt-get update >/dev/null 2>&1 || true
    install && installed
done
tail -5 "$log" >&2
echo "Could not install:$missing" >&2
exit 1
