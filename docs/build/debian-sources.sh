#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches source packages from the Debian archive that this machine's apt uses. apt checks them; this machine's lists are not touched.
# usage: debian-sources.sh FOLDER [--download-only] PACKAGE[=VERSION]...     unpacks them in FOLDER; FETCHED as in deps.sh
# Exit: 0, 77 they cannot be had.
set -eu
cd "$1"
shift
echo "  FETCH   sources of $(echo " $*" | sed 's/ --[a-z-]*//g; s/^ //')"
began=$(date +%s)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
# shellcheck disable=SC2016
apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | sort -u |
    sed -nE "s|^(.*/debian(-security)?/?) (.*)|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \1 \3 main|p" >"$work/sources.list"
[ -s "$work/sources.list" ] || { echo "apt on this machine names no Debian archive" >&2; exit 77; }
apt() {
    apt-get -qq -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/nonexistent -oDir::State::Lists="$work/lists" \
        -oDir::Cache="$work/cache" -oAPT::Sandbox::User="$(id -un)" -oAcquire::Retries=3 -oAPT::Update::Post-Invoke-Success= "$@"
}
{ apt update && apt source "$@"; } >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; exit 77; }
[ -z "${FETCHED-}" ] || echo $(($(date +%s) - began)) >>"$FETCHED"
