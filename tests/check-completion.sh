#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Completes command lines in bash and compares with what has to come. usage: check-completion.sh PYCAP PYSYM
# Of answers that may grow, such as the options, only some words are asked for.
set -u
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ln -s "$(realpath "$1")" "$dir/pycap"
ln -s "$(realpath "$2")" "$dir/pysym"
PATH=$dir:$PATH
failed=0

# What bash offers for the last of the words, in one line and sorted. "=" is a word of its own, as in an interactive bash.
answer() {
    bash --norc --noprofile -c '
        . docs/completion/pycap.bash || exit
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        function=$(complete -p "$1" | sed -n "s/.* -F \([^ ]*\) .*/\1/p")
        "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$@" 2>&1 | sort -u | paste -sd ' '
}

# is WANTED WORDS...: exactly that is offered.
is() {
    local wanted=$1 got
    shift
    got=$(answer "$@")
    [ "$got" = "$wanted" ] || { echo "completing '$*': '$got', not '$wanted'" >&2; failed=1; }
}

# has WANTED WORDS...: that is among what is offered.
has() {
    local wanted=$1 got
    shift
    got=$(answer "$@")
    case " $got " in *" $wanted "*) ;; *) echo "completing '$*': '$got' lacks '$wanted'" >&2; failed=1 ;; esac
}

is record pycap rec
has archive pycap ""
is dump pycap du
is top pycap to
is --python-only pycap top --py
is --timeout pycap dump --ti
is --version pycap --v
is --duration pycap record --du
is "--no-inherit" pycap record -o file --no-in
has context-switches pycap record --event c
is page-faults pycap record -e page
is tables pycap record --unwind = t
is bpf pycap record --backend b
is --strip-code pycap archive trace.bin --strip
is "--events --help --verbose" pycap info --
is true pycap record -- true
is "" pycap record -- true --o
is "--no-host --nolineno" pysym trace.bin --no
is "--pid --python-only" pysym --p
is speedscope pysym trace.bin -f spe
is speedscope pysym --format = spe
is process pysym trace.bin --merge pr
is process pysym trace.bin --split pr
is "file layer module package" pysym trace.bin --group ""
is kernel pysym trace.bin --layer k
is "" pysym trace.b
is diff pysym dif
is markdown pysym diff a.bin -- b.bin -f m
is --fail-on pysym diff a.bin -- b.bin --fa
is "--baseline --budget" pysym diff --b
is "--work --work-note" pysym baseline --w
is push pysym pus
is "--label --label-map --layer" pysym push --la
is "--parca --password-file --pid --proxy --pyroscope --python-only" pysym push --p
for format in $("$2" --help | sed -n '/^formats/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
    has "$format" pysym --format ""
    "$2" /dev/null --format "$format" 2>&1 | grep -q "unknown format" && { echo "$format is no format" >&2; failed=1; }
done
# Values that the completion names are in the help text, too.
for option in unwind backend; do
    values=$(answer pycap record --$option "")
    [ -n "$values" ] || { echo "no values for --$option" >&2; failed=1; }
    for value in $values; do
        "$1" record --help | grep -qw -- "$value" || { echo "pycap record --help does not know --$option $value" >&2; failed=1; }
    done
done
exit $failed
