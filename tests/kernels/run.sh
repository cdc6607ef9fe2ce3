#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a kernel in qemu (software emulation) and runs a shell command in it as root,
# in the checkout; gives the command's output and exit code. The guest's root is this
# machine's own, with changes thrown away; the checkout is shared, writable.
# usage: run.sh [options] KERNEL 'COMMAND'
#   -s DIR   share DIR too, writable, at the same path
#   -c N     processors (2)     -m MIB   memory (2048)     -t SECS   limit (600)
#   -a WORDS the kernel's, such as possible_cpus=512
#   -1       one thread emulates all processors, by turns
#   -v       the kernel's console to stderr at the end
# Exit: the command's; 2 usage; 77 can't run here; 124 past the limit; 125 the guest gave no result.
set -euo pipefail
. "$(dirname "$0")/../debian.sh"

cpus=2 memory=2048 limit=600 verbose=0 words= threads=multi share=$checkout
while getopts s:c:m:t:a:1v option; do
    case $option in
    s) share+=,$(realpath "$OPTARG") ;;
    c) cpus=$OPTARG ;;
    m) memory=$OPTARG ;;
    t) limit=$OPTARG ;;
    a) words=$OPTARG ;;
    1) threads=single ;;
    v) verbose=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 2 ] || { sed -n 6,12p "$0" >&2; exit 2; }
kernel=$1 command=$2
case $share in *[[:space:]]*) skip "the checkout's path has a space in it" ;; esac

dir=$("$tests/kernels/fetch.sh" "$kernel")
# Debian 12 ships the daemon with qemu, later releases as a package of its own.
[ -x /usr/lib/qemu/virtiofsd ] || [ -x /usr/libexec/virtiofsd ] || sh "$checkout/docs/build/deps.sh" virtiofsd >&2 || true
virtiofsd=
for file in /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd; do
    [ -x $file ] && virtiofsd=$file && break
done
[ -n "$virtiofsd" ] || skip "no virtiofsd to share files with the guest"

mkdir -p "$cache/runs"
run=$(mktemp -d "$cache/runs/$kernel.XXXXXX")
share+=,$run
fsd=
finish() {
    [ -z "$fsd" ] || kill "$fsd" 2>/dev/null || true
    rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT TERM

printf '%s\n' "$command" >"$run/command"
cp /bin/busybox "$run/busybox"
cat >"$run/boot.sh" <<BOOT
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYCAP_GUEST=$kernel
read -r up rest </proc/uptime
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
for fs in bpf:/sys/fs/bpf tracefs:/sys/kernel/tracing debugfs:/sys/kernel/debug cgroup2:/sys/fs/cgroup; do
    mount -t \${fs%%:*} none \${fs#*:} 2>/dev/null
done
cd "$checkout"
/bin/sh $run/command >$run/out 2>$run/err </dev/null
rc=\$?
read -r end rest </proc/uptime
echo "\$up \$end" >$run/times
dmesg >$run/dmesg 2>/dev/null
echo \$rc >$run/rc
sync
$run/busybox poweroff -f
sleep 60
BOOT

if [ "$virtiofsd" = /usr/lib/qemu/virtiofsd ]; then
    nice "$virtiofsd" --socket-path="$run/fs.sock" -o source=/ -o cache=auto -o sandbox=chroot -o xattr >"$run/virtiofsd.log" 2>&1 &
else
    nice "$virtiofsd" --socket-path="$run/fs.sock" --shared-dir=/ --cache=auto --sandbox=chroot --xattr >"$run/virtiofsd.log" 2>&1 &
fi
fsd=$!
for _ in $(seq 300); do
    [ -S "$run/fs.sock" ] && break
    sleep 0.1
done

# Without cmpxchg16b: qemu 7.2 at times leaves garbage in the flags behind it, and 6.12, whose allocator uses it at
# every turn, dies of that in one of three runs.
status=0
timeout "$limit" nice qemu-system-x86_64 -accel tcg,thread=$threads -cpu max,-cx16 -machine q35 -nodefaults \
    -display none -no-reboot -smp "$cpus" -m "$memory" -kernel "$dir/vmlinuz" -initrd "$dir/initramfs.img" \
    -object memory-backend-memfd,id=mem,size="${memory}M",share=on -numa node,memdev=mem \
    -chardev socket,id=fs,path="$run/fs.sock" -device vhost-user-fs-pci,chardev=fs,tag=host \
    -serial "file:$run/console" \
    -append "console=ttyS0 quiet loglevel=4 oops=panic panic=-1 pycap.run=$run pycap.share=$share $words" \
    </dev/null >"$run/qemu.log" 2>&1 || status=$?

[ ! -e "$run/out" ] || cat "$run/out"
[ ! -e "$run/err" ] || cat "$run/err" >&2
[ $verbose = 0 ] || { cat "$run/console"; cat "$run/dmesg" 2>/dev/null; } >&2
if [ -s "$run/rc" ]; then
    awk -v kernel="$(cat "$dir/release")" '{ printf "  GUEST   %s: booted in %.0f s, ran for %.0f s\n", kernel, $1, $2 - $1 }' "$run/times" >&2
    exit "$(cat "$run/rc")"
fi
if [ $status = 124 ]; then
    tail -n 20 "$run/console" >&2 || true
    say "kernel $kernel: past the limit of $limit s"
    exit 124
fi
tail -n 40 "$run/console" "$run/qemu.log" "$run/virtiofsd.log" >&2 || true
say "kernel $kernel: no result (qemu's exit code $status)"
exit 125
