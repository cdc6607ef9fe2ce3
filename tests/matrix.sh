#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Samples every CPython that is here and compares with what each says of itself (tests/tools/matrix.py): a row for each.
# Of docs/accuracy.md the table. By hand, as root; tests/integration/test_matrix.py runs the same more shortly.
# usage: matrix.sh [-s SECONDS] [-F HZ] [-k FOLDER] [NAME...]
#   -s in each of some 45 chains, 0.15 unless told; -k keeps traces and what the interpreters told
#   NAME: only interpreters whose name has one of these in it
# Interpreters: pyenv's, Debian's, those of tests/interpreters.sh, tests/flavours.sh and tests/released.sh where these have
# made them; those that are missing are not listed. MORE: further ones, as NAME=COMMAND, a line each.
# Exit: 0, 1 a sample is wrong or too many are marked, 2 usage, 77 nothing could be run.
set -euo pipefail
. "$(dirname "$0")/debian.sh"
seconds=0.15 hz=1999 keep=()
while getopts s:F:k: option; do
    case $option in
    s) seconds=$OPTARG ;;
    F) hz=$OPTARG ;;
    k) mkdir -p "$OPTARG" && keep=(--keep "$OPTARG") ;;
    *) sed -n '/^# usage/,/^# Exit/p' "$0" >&2 && exit 2 ;;
    esac
done
shift $((OPTIND - 1))
wanted=("$@")
[ "$(id -u)" = 0 ] || skip "needs root to record"

failed=0 ran=0
run() { # NAME SYSROOT COMMAND...
    local name=$1 sysroot=() word
    [ -z "$2" ] || sysroot=(--sysroot "$2")
    shift 2
    for word in "${wanted[@]:-}"; do
        [[ $name == *"$word"* ]] && break
    done
    [[ $name == *"$word"* ]] || return 0
    "$@" -c 'import json, re, functools' 2>/dev/null || return 0
    ran=1
    /usr/bin/python3 "$tests/tools/matrix.py" --seconds "$seconds" --hz "$hz" "${keep[@]}" "${sysroot[@]}" "$name" "$@" ||
        failed=1
}

/usr/bin/python3 "$tests/tools/matrix.py" --head
for python in $(printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python | sort -V); do
    [ -x "$python" ] && run "$(basename "${python%/bin/python}")-pyenv" "" "$python"
done
[ -x /usr/bin/python3.11 ] && run 3.11-debian "" /usr/bin/python3.11
for root in "$cache"/roots/{bullseye,trixie,sid}; do
    for python in "$root"/usr/bin/python3.*; do
        name=$(basename "$python")
        [[ $name =~ ^python3\.[0-9]+d?$ ]] && [ -e "$root/.complete" ] || continue
        run "${name#python}-$(basename "$root")" "$root" "$tests/in-root.sh" "$root" "/usr/bin/$name"
    done
done
for folder in $(printf '%s\n' "$cache"/flavours/* "$cache"/released/* | sort -V); do
    for python in "$folder"/bin/python3.* "$folder"/usr/bin/python3.*; do
        [[ $(basename "$python") =~ ^python3\.[0-9]+[td]?$ ]] && run "$(basename "$folder")" "" "$python" && break
    done
done
while IFS== read -r name command; do
    # shellcheck disable=SC2086
    [ -z "$name" ] || run "$name" "" $command
done <<<"${MORE:-}"
[ $ran = 1 ] || skip "no interpreter"
exit $failed
