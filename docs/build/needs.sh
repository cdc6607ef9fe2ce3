#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Looks for what a goal of make needs, by asking for it and not for packages, so that it holds on every system. Names
# what is missing, with Debian's package that has it, and the command that installs it.
# usage: needs.sh build|man|test     CC, CPPFLAGS, PKG_CONFIG, CLANG, LLVM_STRIP, BPFTOOL: as make has them
#                                    CROSS: the triplet of another machine, whose libraries are looked for
# Exit: 0 all is there, 1 something is missing, 2 usage.
set -u
missing=
: "${CC:=cc}" "${PKG_CONFIG:=pkg-config}"
of=
[ -z "${CROSS-}" ] || of=:$(dpkg-architecture -t "$CROSS" -qDEB_HOST_ARCH 2>/dev/null || echo "${CROSS%%-*}")

need() { # NAME PACKAGE
    missing="$missing$(printf '  %-22s %s' "$1" "$2")
"
}

tool() { # COMMAND PACKAGE
    # Commands may have options, as in CC="gcc -m64".
    command -v "${1%% *}" >/dev/null || need "$1" "$2"
}

header() { # FILE PACKAGE [MODULE]: a header, where pkg-config says that the module's are
    # shellcheck disable=SC2046,SC2086
    printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <setjmp.h>\n#include <%s>\n' "$1" |
        $CC ${3:+$($PKG_CONFIG --cflags "$3")} ${CPPFLAGS-} -E -o /dev/null - 2>/dev/null || need "$1" "$2$of"
}

library() { # MODULE FILE PACKAGE
    if ! $PKG_CONFIG --exists "$1"; then
        need "$1.pc" "$3$of"
    else
        header "$2" "$3" "$1"
    fi
}

case ${1-} in
build)
    tool "$CC" "gcc${CROSS:+-$CROSS}"
    tool "$PKG_CONFIG" "pkgconf$of"
    tool "${CLANG:-clang-14}" clang-14
    tool "${LLVM_STRIP:-llvm-strip-14}" llvm-14
    tool "${BPFTOOL:-bpftool}" bpftool
    # Without a compiler and pkg-config nothing is known of libraries.
    if command -v "${CC%% *}" >/dev/null && command -v "${PKG_CONFIG%% *}" >/dev/null; then
        header stdlib.h libc6-dev
        library libbpf bpf/libbpf.h libbpf-dev
        library libelf gelf.h libelf-dev
        library libdw elfutils/libdwfl.h libdw-dev
        library libunwind-generic libunwind.h libunwind-dev
        library jansson jansson.h libjansson-dev
        library libzstd zstd.h libzstd-dev
        library libarchive archive.h libarchive-dev
        library libxxhash xxhash.h libxxhash-dev
        header libiberty/demangle.h libiberty-dev
        library ncursesw ncurses.h libncurses-dev
        library zlib zlib.h zlib1g-dev
        library liblzma lzma.h liblzma-dev
        library libseccomp seccomp.h libseccomp-dev
        library libcurl curl/curl.h libcurl4-gnutls-dev
    fi
    what="building" goal=deps ;;
man)
    tool scdoc scdoc
    what="the manual pages" goal=deps ;;
test)
    library cmocka cmocka.h libcmocka-dev
    what="the unit tests" goal=deps-test ;;
*)
    sed -n 's/^# usage/usage/p' "$0" >&2
    exit 2 ;;
esac
[ -n "$missing" ] || exit 0
printf 'Missing for %s (on the right Debian'\''s package):\n%s' "$what" "$missing" >&2
if [ -e /etc/debian_version ] && [ -z "$of" ]; then
    # shellcheck disable=SC2016
    printf '`make %s` installs what is missing, as root or with sudo.\n' $goal >&2
else
    echo "Install what is missing from this system's packages." >&2
fi
exit 1
