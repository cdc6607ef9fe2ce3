#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the container image twice, looks at what is in it, and runs recorder, sender and reader from it under runc and crun, with the
# rights that docs/kubernetes/pycap.yaml gives them.      usage: image.sh      as root
# Exit: 0, 1 failed, 77 cannot run here.
# shellcheck disable=SC2016,SC2154
set -euo pipefail
. "$(dirname "$0")/debian.sh"
cd "$checkout"
. tests/packaged.sh

[ "$(id -u)" = 0 ] || skip "to run containers without a daemon needs root"
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
python=${PYTHON:-/usr/bin/python3}
version=$(sed -n 's/^VERSION := //p' Makefile)
for package in runc crun skopeo openssl python3-yaml; do
    sh docs/build/deps.sh $package >&2 || true
done
"$python" -c 'import yaml' || skip "no python3-yaml"
static_libraries_or_skip

dir=$(mktemp -d)
program='' running='' store='' cgroup=''
end() {
    local pid name
    for pid in $program $running $store; do
        kill "$pid" && wait "$pid" || true
    done
    for name in runc crun; do
        $name list -q | grep "^image-$$-" | xargs -rn1 $name delete -f || true
    done
    [ -z "$cgroup" ] || rmdir "$cgroup" || true
    rm -rf "$dir"
} 2>/dev/null
trap end EXIT

wait_for() { # WHAT COMMAND...: until it is true, for half a minute
    local what=$1 tries=600
    shift
    until "$@" 2>/dev/null; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { failure "$what"; return 1; }
        sleep 0.05
    done
}

# ---- what is in it ----
make image >"$dir/make.log" 2>&1 || { tail -n 20 "$dir/make.log"; exit 1; }
image=build/pycap-$version-oci-x86_64.tar
cp -R build/static/usr "$dir/usr"
find "$dir/usr" -exec touch -d 2020-02-02 {} +
(umask 077 && TZ=Asia/Tokyo SOURCE_DATE_EPOCH=$(make -s --eval='date:; @echo $(SOURCE_DATE_EPOCH)' date) \
    "$python" docs/build/image.py "$version" x86_64 "$dir/usr" "$dir") >"$dir/make.log" 2>&1 || cat "$dir/make.log"
expect "the same bytes again" cmp "$image" "$dir/${image##*/}"

# Volumes as a kubelet makes them, for the group of the pod.
chmod 755 "$dir"
volumes=()
for volume in traces status names state secret tmp; do
    install -d -m 2777 -g 10001 "$dir/$volume"
    volumes+=(--volume "$volume=$dir/$volume")
done
bundle() { # NAME CONTAINER OPTION...: what a runtime runs
    "$python" tests/image/bundle.py "$image" "$dir/root" "$2" "$dir/$1" "${volumes[@]}" "${@:3}"
}
bundle record record
(cd "$dir/root" && find . -mindepth 1 -printf '%M %U:%G %P\n' | LC_ALL=C sort -k 3) >"$dir/list"
expect "it holds what it should, and nothing else" diff "$dir/list" <(grep -v "^#" tests/image/contents)
if command -v skopeo >/dev/null; then
    expect "skopeo reads it, as an archive of OCI" skopeo inspect "oci-archive:$image:pycap:$version"
    expect "skopeo reads it, as an archive of Docker" skopeo inspect "docker-archive:$image:pycap:$version"
else
    skipped "skopeo is not installed"
fi

# ---- to run it ----
# crun refuses a host that has hierarchies of cgroups of both versions, so it gets the newer one alone.
runtime() { # RUNTIME ARGUMENT...
    if [ "$1" = crun ]; then
        set -- unshare --mount sh -c 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh \
            crun --cgroup-manager=disabled "${@:2}"
    fi
    exec "$@"
}
exec_container() { # RUNTIME NAME: the bundle of that name, until it ends
    runtime "$1" run -b "$dir/$2" "image-$$-$1-$2"
}
start() { # RUNTIME NAME: its output goes to the file NAME.out, what it says to NAME.said
    exec_container "$1" "$2" >"$dir/$2.out" 2>"$dir/$2.said" </dev/null &
    running=$!
}
stop() { # RUNTIME NAME WHAT: as a kubelet does
    local code=0
    "$1" kill "image-$$-$1-$2" TERM || true
    wait "$running" || code=$?
    running=
    expect "$1: $3 ends well at SIGTERM" [ $code = 0 ]
}
status_of() { # RUNTIME NAME: of its first process
    cat "/proc/$("$1" state "image-$$-$1-$2" | sed -n 's/^ *"pid": \([0-9]*\).*/\1/p')/status"
}
has_samples() { [ -n "$(find "$dir/traces" -name '*.bin' -size +3k)" ]; }
spins='spins_for_the_image'

# As `kubectl exec` does it, in the recorder's container: of one container, into standard output.
record_container() { # RUNTIME
    (runtime "$1" exec "image-$$-$1-record" /usr/bin/pycap record --container "$(printf %.12s "$id")" -d 1 -o -) \
        >"$dir/one.out" 2>"$dir/one.said" </dev/null || true
    expect "$1: pycap record --container ID -o - beside it" sh -c 'build/static/bin/pysym "$0.out" -f folded >"$0.folded" 2>&1 &&
        grep "$1 (.* [0-9]" "$0.folded" && ! grep -v "$1" "$0.folded" || { cat "$0.said" "$0.folded"; false; }' "$dir/one" $spins
}
record() { # RUNTIME
    rm -f "$dir"/traces/*
    start "$1" record
    wait_for "$1: the recorder writes a trace" has_samples || { cat "$dir/record.said"; return 1; }
    if [ -n "$cgroup" ]; then
        record_container "$1"
    else
        skipped "$1: no cgroup can be made for --container"
        sleep 1
    fi
    stop "$1" record "the recorder, with the nine capabilities of the manifest,"
    expect "$1: it lacks no capability, and has nothing to say" sh -c 'cat "$0/record.said" && [ ! -s "$0/record.said" ] &&
        build/static/bin/pysym "$0"/traces/*.bin -f summary -v >"$0/summary" && ! grep "^  without" "$0/summary"' "$dir"
    expect "$1: the trace is for the group of the volumes" sh -c '[ "$(stat -c "%a %u:%g" "$0"/*.bin)" = "640 0:10001" ]' "$dir/traces"
}
read_it() { # RUNTIME
    rm -rf "$dir/read"
    bundle read push -- /usr/bin/pysym -f folded "/traces/$(ls "$dir/traces")"
    (exec_container "$1" read) >"$dir/read.out" 2>"$dir/read.said" </dev/null || true
    expect "$1: pysym reads it as an ordinary user" sh -c 'grep "$1 (.* [0-9]" "$0.out" || { cat "$0.said"; false; }' "$dir/read" $spins
}
push() { # RUNTIME
    rm -rf "$dir"/push* "$dir"/state/* "$dir/store/accepted"
    bundle push push --network --set "pyroscope=$(cat "$dir/store/url")"
    start "$1" push
    wait_for "$1: the sender sends" grep -qs $spins "$dir/store/accepted" || { cat "$dir/push.said"; return 1; }
    status_of "$1" push >"$dir/push.status"
    expect "$1: the sender is a user without capabilities" sh -c \
        'grep "^Uid:.10002.10002.10002.10002$" "$0" && grep "^CapBnd:.0*$" "$0" && grep "^NoNewPrivs:.1$" "$0" || { grep -E "^(Uid|Cap|NoNew)" "$0"; false; }' "$dir/push.status"
    stop "$1" push "the sender"
    expect "$1: with the labels of the map, over TLS, with the token" grep "'namespace': 'shop'.*$spins" "$dir/store/accepted"
}
# A program of this host, in a cgroup as containers have, where there can be one.
"$python" -c "
def $spins():
    while True:
        pass
$spins()" &
program=$!
id=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
unified=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
if [ -n "$unified" ] && mkdir "$unified/docker-$id.scope" 2>/dev/null; then
    cgroup=$unified/docker-$id.scope
    echo $program >"$cgroup/cgroup.procs"
fi
echo "host:node namespace=shop" >"$dir/names/labels"
install -m 0440 -g 10001 /dev/stdin "$dir/secret/token" <<<"s3cr3t"
mkdir "$dir/store"
"$python" tests/image/store.py "$dir/store" s3cr3t >"$dir/store/said" 2>&1 &
store=$!
# The store's certificate is one of those that the image trusts.
wait_for "the store begins" test -e "$dir/store/url" || { cat "$dir/store/said"; exit 1; }
cat "$dir/store/store.pem" >>"$dir/root/etc/ssl/certs/ca-certificates.crt"
bundle probe record -- /usr/bin/pycap info
for name in runc crun; do
    why=$( (exec_container $name probe) 2>&1 </dev/null) || true
    if ! grep -q '^sampling  *yes' <<<"$why"; then
        skipped "$name: $(grep -m 1 . <<<"$why")"
        continue
    fi
    record $name || continue
    read_it $name
    push $name || true
done
report
