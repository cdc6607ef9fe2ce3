# SPDX-License-Identifier: Apache-2.0
# bash completion for pycap and pysym. Commands, options and formats are those that --help of the program at hand
# lists, so they need no list here. `make install` puts this file where bash-completion looks for both names.
# shellcheck shell=bash disable=SC2207

# The long options in a help text: of the lines that define options, without remarks in parentheses.
_pycap_options() {
    sed -n '/^ *-/{s/([^)]*)//g;p}' | grep -oE -- '--[a-z][a-z-]*' | sort -u
}

# Completes one word as WORDS.
_pycap_words() { # WORD WORDS
    local IFS=$' \t\n'
    COMPREPLY=($(compgen -W "$2" -- "$1"))
}

# What both start with: the word being completed and the one before it, also for --option=value.
_pycap_context() {
    word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    if [[ $word == "=" ]]; then
        word=
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
}

_pycap() {
    local word before i help command=${COMP_WORDS[1]}
    COMPREPLY=()
    _pycap_context
    if ((COMP_CWORD == 1)); then
        help=$("$1" --help 2>/dev/null) || return 0
        _pycap_words "$word" "$(sed -nE 's/^(usage:)? +pycap ([a-z]+).*/\2/p' <<<"$help") --help --version"
        return
    fi
    # After -- stands the command to record.
    if [[ $command == record ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            [[ ${COMP_WORDS[i]} == -- ]] || continue
            if ((i == COMP_CWORD - 1)); then
                COMPREPLY=($(compgen -c -- "$word"))
            elif declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            fi
            return
        done
    fi
    case $before in
    # Tracepoints are too many, and bash ends a word at their colon.
    -e | --event) _pycap_words "$word" "$("$1" info --events "$word*" 2>/dev/null | grep -v :)" ;;
    --backend) _pycap_words "$word" "auto bpf proc" ;;
    --unwind) _pycap_words "$word" "tables snapshot both fp none" ;;
    -p | --pid) _pycap_words "$word" "$(pgrep python)" ;;
    *)
        [[ $word == -* ]] || return 0
        help=$("$1" "$command" --help 2>/dev/null) || return 0
        _pycap_words "$word" "$(_pycap_options <<<"$help")"
        ;;
    esac
}

_pysym() {
    local word before help command=
    COMPREPLY=()
    _pycap_context
    # Commands, beside files whose names begin like them.
    if ((COMP_CWORD == 1)) && [[ $word && $word != -* ]]; then
        COMPREPLY=($(compgen -W "annotate diff baseline push" -- "$word") $(compgen -f -- "$word"))
        return
    fi
    [[ ${COMP_WORDS[1]} == @(diff|baseline|push) ]] && command=${COMP_WORDS[1]}
    case $before in
    -f | --format)
        help=$("$1" ${command:+"$command"} --help 2>/dev/null) || return 0
        _pycap_words "$word" "$(sed -nE '/^formats/,/^$/s/^  ([a-z-]+) .*/\1/p' <<<"$help")"
        ;;
    --merge) _pycap_words "$word" "all process thread" ;;
    --split) _pycap_words "$word" "process thread" ;;
    --sort) _pycap_words "$word" "self total" ;;
    --by) _pycap_words "$word" "function line" ;;
    --group) _pycap_words "$word" "module package file layer" ;;
    --layer) _pycap_words "$word" "python native kernel" ;;
    *)
        [[ $word == -* ]] || return 0
        help=$("$1" ${command:+"$command"} --help 2>/dev/null) || return 0
        _pycap_words "$word" "$(_pycap_options <<<"$help")"
        ;;
    esac
}

# Where nothing of the above fits, file names.
complete -o default -F _pycap pycap
complete -o default -F _pysym pysym
