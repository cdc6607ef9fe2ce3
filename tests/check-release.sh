#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when something that names the version of this source names another one than the Makefile: the newest headings of CHANGES
# and of the package's changelog, names of packages and images, and output that the manual pages show.
# usage: check-release.sh [TOP]
set -eu
cd "${1:-$(dirname "$0")/..}"
version=$(sed -n 's/^VERSION := //p' Makefile)
status=0

heading() { # FILE PATTERN
    head -n 1 "$1" | grep -qE "$2" && return
    echo "$1:1: does not begin with $version" >&2
    status=1
}
heading CHANGES "^$version \("
heading docs/debian/changelog "^pycap \($version-[0-9]+\)"

wrong=$(grep -rnoE '(pycap|pysym)[_:-][0-9]+(\.[0-9]+)+|"(exporter|tool)": "py(cap|sym) [0-9.]+' README.md docs |
    grep -vE "[_: -]$(printf '%s' "$version" | sed 's/\./\\./g')\$" || true)
if [ -n "$wrong" ]; then
    printf '%s\n' "$wrong" | sed "s/\$/: the version is $version/" >&2
    status=1
fi
exit $status
