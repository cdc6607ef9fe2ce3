#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries that a static pysym links and Debian has not so: libcurl with HTTP and TLS alone, whose names are
# resolved without the shared libraries of the C library (c-ares), libdebuginfod, and libunwind as code for any address. They come from Debian's source packages.
# usage: static-libraries.sh FOLDER     makes FOLDER/lib/* and FOLDER/include/*; CC, and FETCHED as in deps.sh
# Exit: 0, 1 failed, 77 the sources cannot be had.
set -eu
to=$1
: "${CC:=cc}"
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
sh "$(dirname "$0")/deps.sh" libssl-dev libc-ares-dev dpkg-dev make
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$to"
to=$(cd "$to" && pwd)
sh "$(dirname "$0")/debian-sources.sh" "$work" curl elfutils libunwind
mkdir -p "$to/lib" "$to/include"
# Which source each is from, and its license, for components.py.
origin() { # LIBRARY PACKAGE
    dpkg-parsechangelog -l "$work/$2"-*/debian/changelog -S Version | sed "s/^/$2 /" >"$to/lib/$1.source"
    cp "$work/$2"-*/debian/copyright "$to/lib/$1.copyright"
}
origin libcurl curl
origin libdebuginfod elfutils
origin libunwind libunwind
origin libunwind-x86_64 libunwind

echo "  BUILD   libcurl"
cd "$work"/curl-*/
protocols=
for protocol in dict file ftp gopher imap ldap ldaps mqtt pop3 rtsp smb smtp telnet tftp; do
    protocols="$protocols --disable-$protocol"
done
# Who signs certificates is told by curl_library.c, which knows where distributions have the file.
# shellcheck disable=SC2086
./configure --quiet --prefix=/nonexistent --disable-shared --enable-static --with-openssl --enable-ares $protocols --disable-manual \
    --disable-libcurl-option --disable-openssl-auto-load-config --disable-ntlm --disable-netrc --disable-tls-srp --disable-alt-svc --disable-hsts --without-ca-bundle --without-ca-path \
    --with-ca-fallback --without-libpsl --without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2 --without-libgsasl \
    --without-brotli --without-zstd CC="$CC" CFLAGS="-O2 -ffile-prefix-map=$work=." >log 2>&1 || { tail -n 5 log >&2; exit 1; }
make -C lib -j"$(nproc)" >log 2>&1 || { tail -n 5 log >&2; exit 1; }
cp lib/.libs/libcurl.a "$to/lib"
cp -r include/curl "$to/include"

echo "  BUILD   libunwind"
cd "$work"/libunwind-*/
{ ./configure --quiet --prefix=/nonexistent --disable-shared --enable-static --with-pic --disable-tests --disable-documentation \
    --disable-setjmp --disable-coredump --disable-ptrace --disable-cxx-exceptions CC="$CC" CFLAGS="-O2 -w -ffile-prefix-map=$work=." &&
    make -C src -j"$(nproc)"; } >log 2>&1 || { tail -n 5 log >&2; exit 1; }
cp src/.libs/libunwind.a src/.libs/libunwind-x86_64.a "$to/lib"

echo "  BUILD   libdebuginfod"
cd "$work"/elfutils-*/
cat >config.h <<EOF
#define PACKAGE_NAME "elfutils"
#define PACKAGE_VERSION "$(basename "$PWD" | sed 's/.*-//')"
#define HAVE_ERROR_H 1
#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_DECL_REALLOCARRAY 1
#define _(text) text
EOF
# shellcheck disable=SC2086
$CC -std=gnu99 -D_GNU_SOURCE -O2 -w -ffile-prefix-map="$work"=. -I. -Idebuginfod -Ilib -Ilibelf -I"$to/include" -c debuginfod/debuginfod-client.c -o client.o
rm -f "$to/lib/libdebuginfod.a"
ar rcsD "$to/lib/libdebuginfod.a" client.o
cp debuginfod/debuginfod.h "$to/include"
