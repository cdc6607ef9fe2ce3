#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails where C code compares versions of CPython: what differs by version is a column of formats/cpython/versions.def.
# usage: check-versions.sh [TOP]
set -eu

# A comparison with PY_VERSION_HEX or its upper half, on either side, or of a field that has a version.
number='0x0[23][0-9a-f]{2}([0-9a-f]{4})?[uUlL]*'
field='(version_hex|python_version|layout(->|\.)version|\bl->version)( *>> *[0-9]+\)?)?'
pattern="(<=?|>=?|==|!=|case) *$number\\b|\\b$number *(<=?|>=?|==|!=)[^<>]|$field *[<>]=?[^<>=]"

# The pattern finds what it is for, and no more.
finds() {
    printf '%s\n' "$1" | grep -qE "$pattern"
}
for line in 'if (img->version_hex >= 0x030c0000)' 'minor == 0x030a' 'x = 0x02070000u <= v' 'if (l->version > limit)' \
    'if (code->python_version >> 16 < newest)' 'case 0x030b:'; do
    finds "$line" || { echo "check-versions.sh: does not find: $line" >&2; exit 1; }
done
for line in 'uint8_t minor = version_hex >> 16;' 'PY_U32 version; /* e.g. 0x030b07f0 */' 'if (!img->version_hex)' \
    'd->python_version = 0x030b0000;' 'if (version != version_hex)' 'mask == 0x0ff'; do
    ! finds "$line" || { echo "check-versions.sh: finds: $line" >&2; exit 1; }
done

cd "${1:-$(dirname "$0")/..}"
[ -e formats/cpython/versions.def ] || { echo "check-versions.sh: no formats/cpython/versions.def" >&2; exit 1; }
if grep -rnE "$pattern" bpf capture formats symbolize --include='*.[ch]'; then
    echo "versions of CPython are compared above: let a column of formats/cpython/versions.def say what differs" >&2
    exit 1
fi
