#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when docs/trace-format.md lacks a record or a field of records.def (in its place and with its type), or a
# reason of losses.def. usage: check-format-doc.sh [TOP]
set -eu
cd "${1:-$(dirname "$0")/..}"
doc=docs/trace-format.md

# Both sides as lines "record NUMBER NAME" and "field NAME FIELD TYPE [ARGUMENT]", in order.
code=$(sed -n \
    -e 's/^RECORD(\([0-9]*\), *\([a-z_0-9]*\),.*/record \1 \2/p' \
    -e 's/^ *F(\([A-Z0-9]*\), *\([a-z_0-9]*\), *\([a-z_0-9]*\),.*/field \2 \1 \3/p' formats/trace/records.def |
    awk '$1 == "record" { name = $3; print; next }
         $3 ~ /^(DEF|DEFS|REF|ID|LIST)$/ { print "field", name, $2, $3, $4; next }
         { print "field", name, $2, $3 }')
text=$(sed -n '/^## Record types/,/^## Packing/p' "$doc" | awk -F' *[|] *' '
    /^### / { split($0, w, " "); name = tolower(w[3]); print "record", w[2], name }
    /^[|] `/ { gsub("`", "", $2); print "field", name, $2, $3 }')
losses=$(sed -n 's/^LOSS(\([0-9]*\), *\([a-z_0-9]*\),.*/\1 \2/p' formats/trace/losses.def)
loss_text=$(sed -n '/^## Loss reasons/,/^## Changes/s/^| *\([0-9][0-9]*\) *| *`\([a-z_0-9]*\)`.*/\1 \2/p' "$doc")

[ -n "$code" ] && [ -n "$losses" ] || { echo "check-format-doc.sh: cannot read the tables" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '%s\n\n%s\n' "$code" "$losses" >"$dir/code"
printf '%s\n\n%s\n' "$text" "$loss_text" >"$dir/doc"
if ! diff "$dir/code" "$dir/doc" >"$dir/diff"; then
    echo "$doc differs from records.def and losses.def (<: only in the code, >: only in the document):" >&2
    grep '^[<>]' "$dir/diff" >&2
    exit 1
fi
