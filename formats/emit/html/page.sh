#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts the page together that the format html fills with data: writes the template with the style and the script in it, and
# with the policy that allows these two, by their hashes, and nothing else: no other script, no network. What stands
# between percent signs in the template is a place for something, once; the program itself fills %title% and %data%.
#
# usage: page.sh TEMPLATE STYLE SCRIPT...
set -eu
template=$1 style=$2
shift 2

fail() {
    echo "page.sh: $1" >&2
    exit 1
}

for place in policy title style data script; do
    test "$(grep -c "%$place%" "$template")" = 1 || fail "$template: %$place% has to stand in one line"
done
# A browser takes what comes first for the end of an element, wherever it stands; and an opened comment lets a script go on
# behind its end.
if grep -n -i -E '</(script|style)|<!--|%(title|data)%' "$style" "$@" >&2; then
    fail "this would end the script or the style of the page, or be taken for a place in it"
fi

# A browser would read over it in a style.
if grep -n -E '^(<<<<<<<|>>>>>>>) ' "$style" >&2; then
    fail "a merge was not finished here"
fi

put_script() {
    echo "'use strict';"
    cat "$@"
}

# The text on standard input as the policy names it.
hash_of() {
    echo "'sha256-$(sha256sum | cut -c 1-64 | tr a-f A-F | basenc --base16 --decode | base64)'"
}
policy="default-src 'none'; script-src $(put_script "$@" | hash_of); style-src $(hash_of <"$style"); \
base-uri 'none'; form-action 'none'"

while IFS= read -r line; do
    case $line in
    *%style%* | *%script%*)
        printf '%s' "${line%%\%*}"
        case $line in
        *%style%*) cat "$style" ;;
        *) put_script "$@" ;;
        esac
        printf '%s\n' "${line##*%}"
        ;;
    *)
        printf '%s\n' "$line" | sed "s|%policy%|$policy|"
        ;;
    esac
done <"$template"
