#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries that a static pysym links and Debian has not so: libcurl with HTTP and TLS alone, whose names are
# resolved without the shared libraries of the C library (c-ares), and libdebuginfod. They come from Debian's source packages, which apt
# checks; this machine's lists are not touched.
# usage: static-libraries.sh FOLDER     makes FOLDER/lib/*.a and FOLDER/include/*; CC, and FETCHED as in deps.sh
# Exit: 0, 1 failed, 77 the sources cannot be had.
set -eu
to=$1
: "${CC:=cc}"
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
sh "$(dirname "$0")/deps.sh" libssl-dev libc-ares-dev dpkg-dev make
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sources() { # PACKAGE...: unpacks their sources
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | sort -u |
        sed -nE "s|^(.*/debian(-security)?/?) (.*)|deb-src [signed-by=$keys] \1 \3 main|p" >sources.list
    [ -s sources.list ] || { echo "apt on this machine names no Debian archive" >&2; exit 77; }
    mkdir -p lists/partial cache/archives/partial
    options="-oDir::Etc::SourceList=$work/sources.list -oDir::Etc::SourceParts=/nonexistent -oDir::State::Lists=$work/lists
        -oDir::Cache=$work/cache -oAPT::Sandbox::User=$(id -un) -oAcquire::Retries=3 -oAPT::Update::Post-Invoke-Success="
    # shellcheck disable=SC2086
    apt-get -qq $options update >log 2>&1 && apt-get -qq $options source "$@" >>log 2>&1 || { tail -n 5 log >&2; exit 77; }
}

mkdir -p "$to"
to=$(cd "$to" && pwd)
cd "$work"
began=$(date +%s)
echo "  FETCH   sources of curl and elfutils"
sources curl elfutils
[ -z "${FETCHED-}" ] || echo $(($(date +%s) - began)) >>"$FETCHED"
mkdir -p "$to/lib" "$to/include"

echo "  BUILD   libcurl"
cd "$work"/curl-*/
protocols=
for protocol in dict file ftp gopher imap ldap ldaps mqtt pop3 rtsp smb smtp telnet tftp; do
    protocols="$protocols --disable-$protocol"
done
# Who signs certificates is told by curl_library.c, which knows where distributions have the file.
# shellcheck disable=SC2086
./configure --quiet --prefix=/nonexistent --disable-shared --enable-static --with-openssl --enable-ares $protocols --disable-manual \
    --disable-libcurl-option --disable-ntlm --disable-netrc --disable-tls-srp --disable-alt-svc --disable-hsts --without-ca-bundle --without-ca-path \
    --with-ca-fallback --without-libpsl --without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2 --without-libgsasl \
    --without-brotli --without-zstd CC="$CC" CFLAGS="-O2 -ffile-prefix-map=$work=." >log 2>&1 || { tail -n 5 log >&2; exit 1; }
make -C lib -j"$(nproc)" >log 2>&1 || { tail -n 5 log >&2; exit 1; }
cp lib/.libs/libcurl.a "$to/lib"
cp -r include/curl "$to/include"

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
