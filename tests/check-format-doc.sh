#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when docs/trace-format.md lacks a record or a field of records.def (in its place and with its type), a value of
# enums.def, a fact of trace.h, a label of labels.def, or a reason or class of losses.def; or has one that the code has not.
# usage: check-format-doc.sh [TOP]
set -eu
cd "${1:-$(dirname "$0")/..}"
doc=docs/trace-format.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Both sides as the same lines, in order: "record NUMBER NAME" and "field NAME FIELD TYPE [ARGUMENT]".
sed -n \
    -e 's/^RECORD(\([0-9]*\), *\([a-z_0-9]*\),.*/record \1 \2/p' \
    -e 's/^ *F(\([A-Z0-9]*\), *\([a-z_0-9]*\), *\([a-z_0-9]*\),.*/field \2 \1 \3/p' formats/trace/records.def |
    awk '$1 == "record" { name = $3; print; next }
         $3 ~ /^(DEF|DEFS|REF|ID|LIST)$/ { print "field", name, $2, $3, $4; next }
         { print "field", name, $2, $3 }' >"$dir/records.code"
sed -n '/^## Record types/,/^## Values/p' "$doc" | awk -F' *[|] *' '
    /^### / { split($0, w, " "); name = tolower(w[3]); print "record", w[2], name }
    /^[|] `/ { gsub("`", "", $2); print "field", name, $2, $3 }' >"$dir/records.doc"

# "value ENUMERATION NUMBER NAME MEANING". The flags of samples stand where samples are described.
sed -n \
    -e 's/^ENUM(\([a-z_]*\),.*/enum \1/p' \
    -e 's/^ *V([A-Z]*, *\([A-Z_]*\), *\([0-9]*\), *"\(.*\)")[)]*$/\2 \1 \3/p' formats/trace/enums.def |
    awk '$1 == "enum" { name = $2; next } { print "value", name, $0 }' | sort >"$dir/values.code"
sed -n '/^## Values/,/^## Loss reasons/p' "$doc" | awk -F' *[|] *' '
    /^##/ { name = "" }
    /^### / { split($0, w, " "); name = w[2] }
    name && /^[|] [0-9]/ { gsub("^`|`$", "", $3); print "value", name, $2, $3, $4 }' | sort >"$dir/values.doc"

# "fact KEY".
sed -n 's/^#define TRACE_META_[A-Z_]* "\(.*\)"$/fact \1/p' formats/trace/trace.h >"$dir/facts.code"
sed -n '/^## Facts/,/^## Labels/s/^| `\([^`]*\)` | .*/fact \1/p' "$doc" >"$dir/facts.doc"

# "label KEY yes|no".
sed -n 's/^LABEL([a-z_]*, *"\([^"]*\)", *\([A-Z]*\),.*/label \1 \2/p' formats/trace/labels.def |
    sed -e 's/SHOWN$/yes/' -e 's/HIDDEN$/no/' >"$dir/labels.code"
sed -n '/^## Labels/,/^## Packing/s/^| `\([^`]*\)` | \([a-z]*\) |.*/label \1 \2/p' "$doc" >"$dir/labels.doc"

# "loss NUMBER NAME CLASS", and the classes.
sed -n 's/^LOSS(\([0-9]*\), *\([a-z_0-9]*\), *\([a-z_]*\),.*/loss \1 \2 \3/p' formats/trace/losses.def >"$dir/losses.code"
sed -n '/^## Loss reasons/,/^## Changes/s/^| *\([0-9][0-9]*\) *| *`\([a-z_0-9]*\)` *| *\([a-z_]*\) *|.*/loss \1 \2 \3/p' "$doc" >"$dir/losses.doc"
sed -n 's/^ *LOSS_CLASS_\([a-z_]*\),.*/class \1/p' formats/trace/trace.h | grep -v 'class unknown' >"$dir/classes.code"
sed -n '/^## Loss reasons/,/^## Changes/s/^| \([a-z_]*\) | [^|]* |$/class \1/p' "$doc" | grep -v 'class class' >"$dir/classes.doc"

failed=0
for what in records values facts labels losses classes; do
    [ -s "$dir/$what.code" ] || { echo "check-format-doc.sh: cannot read the table of $what" >&2; exit 1; }
    if ! diff "$dir/$what.code" "$dir/$what.doc" >"$dir/diff"; then
        echo "$doc and the code differ in $what (<: only in the code, >: only in the document):" >&2
        grep '^[<>]' "$dir/diff" >&2
        failed=1
    fi
done
exit $failed
