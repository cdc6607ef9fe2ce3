#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists the C files of the programs that compile for the machines of ARCHES alone: those that include a header of bpf/ or of
# one machine, themselves or through others.
set -eu
pattern='"bpf/|[-_]x86_64\.(h|def)'
found=
while
    before=$found
    found=$(grep -rlE "^#include .*($pattern)|^#error .*x86-64" capture formats symbolize --include='*.[ch]' | sort)
    [ "$found" != "$before" ]
do
    for header in $(printf '%s\n' "$found" | grep '\.h$'); do
        pattern="$pattern|\"$header\""
    done
done
printf '%s\n' "$found" | grep '\.c$'
