#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a manual page lacks a long option that --help of the program or of one of its commands lists, or
# describes one that none of them lists. usage: check-manual.sh PYCAP PYSYM
# In a help text options stand in lines that begin with one, outside parentheses; in a page in lines of
# their own.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0

for program in "$1" "$2"; do
    name=$(basename "$program")
    page=docs/$name.1.scd
    "$program" --help >"$dir/help"
    # shellcheck disable=SC2013
    for command in $(sed -nE "s/^(usage:)? +$name ([a-z]+)( .*)?\$/\2/p" "$dir/help"); do
        if "$program" "$command" --help >"$dir/command" 2>/dev/null; then
            cat "$dir/command" >>"$dir/help"
        fi
    done
    sed -n '/^ *-/{s/([^)]*)//g;p}' "$dir/help" | grep -oE -- '--[a-z][a-z-]*' | sort -u >"$dir/program"
    sed -nE '/^\*-/{h;s/\*[^*]*\*|_[^_]*_//g;/[[:alnum:]]/!{g;p}}' "$page" | grep -oE -- '--[a-z][a-z-]*' | sort -u >"$dir/page"
    if ! diff "$dir/program" "$dir/page" >"$dir/diff"; then
        echo "$page differs from $name --help (<: only in the program, >: only in the page):" >&2
        grep '^[<>]' "$dir/diff" >&2
        status=1
    fi
done
exit $status
