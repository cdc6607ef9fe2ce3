#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks for what a goal of make needs, by asking for it and not for packages, so that it holds on every system. Names
# what is missing, with Debian's package that has it, and the command that installs it.
# usage: needs.sh build|man|test     CC, CLANG, LLVM_STRIP, BPFTOOL: the programs to look for
# Exit: 0 all is there, 1 something is missing, 2 usage.
set -u
missing=

need() { # NAME PACKAGE
    missing="$missing$(printf '  %-22s %s' "$1" "$2")
"
}

tool() { # COMMAND PACKAGE
    # Commands may have options, as in CC="gcc -m64".
    command -v "${1%% *}" >/dev/null || need "$1" "$2"
}

header() { # FILE PACKAGE
    printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\n' "$1" | ${CC:-cc} -E -o /dev/null - 2>/dev/null || need "$1" "$2"
}

case ${1-} in
build)
    tool "${CC:-cc}" gcc
    tool "${CLANG:-clang-14}" clang-14
    tool "${LLVM_STRIP:-llvm-strip-14}" llvm-14
    tool "${BPFTOOL:-bpftool}" bpftool
    # Without a compiler nothing is known of headers.
    if command -v "${CC%% *}" >/dev/null; then
        header stdlib.h libc6-dev
        header bpf/libbpf.h libbpf-dev
        header gelf.h libelf-dev
        header elfutils/libdwfl.h libdw-dev
        header libunwind.h libunwind-dev
        header jansson.h libjansson-dev
        header zstd.h libzstd-dev
        header archive.h libarchive-dev
        header xxhash.h libxxhash-dev
        header libiberty/demangle.h libiberty-dev
        header ncurses.h libncurses-dev
        header zlib.h zlib1g-dev
        header lzma.h liblzma-dev
        header seccomp.h libseccomp-dev
        header curl/curl.h libcurl4-gnutls-dev
    fi
    what="building" goal=deps ;;
man)
    tool scdoc scdoc
    what="the manual pages" goal=deps ;;
test)
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' |
        ${CC:-cc} -E -o /dev/null - 2>/dev/null || need cmocka.h libcmocka-dev
    what="the unit tests" goal=deps-test ;;
*)
    sed -n 's/^# usage/usage/p' "$0" >&2
    exit 2 ;;
esac
[ -n "$missing" ] || exit 0
printf 'Missing for %s (on the right Debian'\''s package):\n%s' "$what" "$missing" >&2
if [ -e /etc/debian_version ]; then
    # shellcheck disable=SC2016
    printf '`make %s` installs what is missing, as root or with sudo.\n' $goal >&2
else
    echo "Install what is missing from this system's packages." >&2
fi
exit 1
