#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches a Debian kernel into the cache (nothing is installed) and builds the small
# initramfs that run.sh boots. Prints the kernel's folder, which then holds
# vmlinuz, release and initramfs.img.
# usage: fetch.sh KERNEL      5.10 | 6.1 | 6.12 | newest
# Exit: 0, 1 failed, 2 usage, 77 can't be had here.
set -euo pipefail
. "$(dirname "$0")/../debian.sh"

[ $# = 1 ] || { sed -n 3,7p "$0" >&2; exit 2; }
kernel=$1
case $kernel in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
newest) suite=sid ;;
*) say "unknown kernel $kernel: 5.10, 6.1, 6.12 or newest"; exit 2 ;;
esac
[ "$(uname -m)" = x86_64 ] || skip "kernels are fetched for x86-64 only"
command -v apt-get >/dev/null || skip "no apt-get to fetch kernels with"
[ "$(id -u)" = 0 ] || skip "needs root (packages, and the guest sees this machine's files)"
sh "$checkout/docs/build/deps.sh" qemu-system-x86 qemu-system-common busybox-static cpio kmod zstd xz-utils >&2 ||
    skip "qemu and its tools can't be installed"

dir=$cache/kernels/$kernel
mkdir -p "$cache/kernels"
cache_lock "kernels/$kernel"

# The cloud image's meta package leads, through changing package names, to the files.
fetch() {
    local packages new=$dir.new began=$SECONDS
    rm -rf "$new" "$dir"
    mkdir -p "$new/debs" "$new/root"
    packages=$(suite_apt "$suite" apt-cache depends --recurse --no-recommends --no-suggests \
        --no-conflicts --no-breaks --no-replaces --no-enhances linux-image-cloud-amd64 |
        grep -E '^linux-(image|binary|modules|base)-[0-9]') || return 1
    say "  FETCH   kernel $kernel:" $packages
    # shellcheck disable=SC2086
    (cd "$new/debs" && suite_apt "$suite" apt-get -qq download $packages >&2) || return 1
    for deb in "$new"/debs/*.deb; do
        nice dpkg-deb -x "$deb" "$new/root"
    done
    find "$new/root" -type f -name 'vmlinu[xz]*' -exec cp {} "$new/vmlinuz" \; -quit
    mkdir -p "$new/lib"
    if [ -d "$new/root/lib/modules" ]; then
        mv "$new/root/lib/modules" "$new/lib/modules"
    else
        mv "$new/root/usr/lib/modules" "$new/lib/modules"
    fi
    (cd "$new/lib/modules" && echo *) >"$new/release"
    rm -rf "$new/debs" "$new/root"
    depmod -b "$new" "$(cat "$new/release")"
    mv "$new" "$dir"
    fetched $((SECONDS - began))
}

initramfs() {
    local root=$dir/initramfs module name
    rm -rf "$root"
    mkdir -p "$root"/{bin,modules,proc,sys,dev,host,scratch,new}
    cp /bin/busybox "$root/bin/busybox"
    for module in virtio_pci virtiofs overlay; do
        modprobe -d "$dir" -S "$(cat "$dir/release")" --show-depends $module 2>/dev/null || true
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$root/paths"
    while read -r module; do
        name=$(basename "$module")
        name=${name%.ko*}.ko
        case $module in
        *.xz) xz -dc "$module" ;;
        *.zst) zstd -dcq "$module" ;;
        *.gz) gzip -dc "$module" ;;
        *) cat "$module" ;;
        esac >"$root/modules/$name"
        echo "$name" >>"$root/modules.list"
    done <"$root/paths"
    touch "$root/modules.list"
    cp "$tests/kernels/init" "$root/init"
    chmod 755 "$root/init"
    (cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 >"$dir/initramfs.new"
    mv "$dir/initramfs.new" "$dir/initramfs.img"
    rm -rf "$root"
}

[ -e "$dir/release" ] || fetch || skip "kernel $kernel can't be fetched from $suite"
[ "$dir/initramfs.img" -nt "$tests/kernels/init" ] && [ "$dir/initramfs.img" -nt "$0" ] || initramfs
echo "$dir"
