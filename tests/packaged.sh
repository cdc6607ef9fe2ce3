# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of what is handed out, the static pycap and the Debian package: counts, and commands in a
# root of their own.
# shellcheck shell=bash

passed=0 failed=0 skipped=0

ok() {
    passed=$((passed + 1))
    echo "  ok      $*"
}

failure() {
    failed=$((failed + 1))
    echo "  FAILED  $*"
}

skipped() {
    skipped=$((skipped + 1))
    echo "  SKIPPED $*"
}

# expect WHAT COMMAND...: the command's exit code is 0, else its output shows.
expect() {
    local what=$1 text
    shift
    if text=$("$@" 2>&1 </dev/null); then
        ok "$what"
    else
        failure "$what"
        printf '%s\n' "$text" | tail -n 20
    fi
}

# For make static: exits with 77 where the sources of its libraries cannot be had.
static_libraries_or_skip() {
    local code=0
    tests/static-libraries.sh || code=$?
    [ $code != 77 ] || { echo "SKIP: the sources of its libraries cannot be had" >&2; exit 77; }
    return $code
}

# The counts as the last line, and the exit code.
report() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
}

# in_root ROOT COMMAND...: with /proc, /sys and the devices of this machine, which are gone from ROOT afterwards.
in_root() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private sh -c '
        for kernel in proc sys dev; do [ ! -d "$0/$kernel" ] || mount --rbind "/$kernel" "$0/$kernel" || exit; done
        exec chroot "$0" "$@"' "$@"
}

# expect_recording ROOT PYCAP: pycap in that root records a Python program of this one for a second, and its stacks are
# read by build/pysym, or what pysym= names.
expect_recording() {
    local root=$1 pycap=$2 why program
    why=$(in_root "$root" "$pycap" info | sed -n 's/^sampling  *//p')
    case $why in
    yes) ;;
    "") failure "pycap info tells nothing of sampling"; return ;;
    *) skipped "record: $why"; return ;;
    esac
    rm -f "$root/spins"
    "${PYTHON:-/usr/bin/python3}" -c '
def spin_for_the_package():
    print("x", flush=True)
    while True:
        pass
spin_for_the_package()' >"$root/spins" &
    program=$!
    until [ -s "$root/spins" ]; do
        kill -0 $program || { failure "no Python program to record"; return; }
        sleep 0.05
    done
    expect "pycap record -d 1" in_root "$root" "$pycap" record -F 499 -d 1 -p $program -o /trace.bin
    kill $program
    wait $program 2>/dev/null || true
    rm -f "$root/spins"
    # shellcheck disable=SC2016
    expect "the stacks recorded" sh -c '"$0" "$1" -f folded | grep -q "spin_for_the_package (.*[0-9]$"' \
        "${pysym:-build/pysym}" "$root/trace.bin"
}
