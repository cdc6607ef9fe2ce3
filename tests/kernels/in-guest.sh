#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside the guest, in the checkout, and only records: what is emulated is slow, and traces are read anywhere.
# usage: in-guest.sh DIR
# Leaves in DIR: release, info, info-N (perf_event_paranoid=N, few capabilities), and for each interpreter N of PYTHONS (default:
# Debian's own) and each way of unwinding: N-WAY.trace, N-WAY.truth (what the program said), N-WAY.log and N-WAY.rc; and the same
# of waits: N-wall, N-idle, of threads that sleep all the time, N-events, of several events at once, and N-growth, of memory; and
# of a flight recorder N-runq-TIME.trace. verify.py judges.
set -u
dir=$1
pycap=${PYCAP:-build/pycap}
uname -r >"$dir/release"
"$pycap" info >"$dir/info" 2>&1
# With the two capabilities that sampling needs, and no others: Debian's kernels ask for CAP_SYS_ADMIN where that value is 3.
ulimit -l unlimited
for paranoid in 2 3; do
    echo $paranoid >/proc/sys/kernel/perf_event_paranoid
    setpriv --bounding-set=-all,+bpf,+perfmon --inh-caps=-all,+bpf,+perfmon "$pycap" info >"$dir/info-$paranoid" 2>&1
done

# How many of the program's functions in which threads sleep have a stack in the trace so far.
stacks() {
    "${PYSYM:-build/pysym}" "$1" -f folded 2>/dev/null | grep -oE ';(sleeps|locks|reads|_worker) ' | sort -u | grep -c .
}

# Records threads that sleep when that begins. The program ends with its input.
idle() {
    mkfifo "/tmp/idle-$1.in"
    "$2" testdata/programs/idle.py 5 <"/tmp/idle-$1.in" >"$dir/$1-idle.truth" &
    exec 9>"/tmp/idle-$1.in"
    while [ ! -s "$dir/$1-idle.truth" ] && kill -0 $!; do sleep 0.2; done
    "$pycap" record -o "$dir/$1-idle.trace" -e off-cpu -d 100 -p $! 2>"$dir/$1-idle.log" 9>&- &
    recorder=$!
    # Their stacks are read in turns, which a guest that gets little CPU comes to late; looking takes much of it.
    while kill -0 $recorder 2>/dev/null && sleep 4 && [ "$(stacks "$dir/$1-idle.trace")" -lt 4 ]; do :; done
    kill -TERM $recorder
    wait $recorder
    echo $? >"$dir/$1-idle.rc"
    exec 9>&-
    wait
}

n=0
for python in ${PYTHONS:-/usr/bin/python3}; do
    echo "$python" >"$dir/$n.python"
    for way in tables:3 snapshot:2; do
        seconds=${way#*:} way=${way%:*}
        # The end of the command ends the recording; --duration is only a guard. The buffer is so large that nothing is left out of
        # it where the host gives the guest no CPU for seconds: functions would have no names when the program has ended.
        PYCAP_VERIFIER_STATS=1 "$pycap" record -o "$dir/$n-$way.trace" -m 64M -F 99 -d 200 --unwind $way -- \
            "$python" tests/kernels/work.py $seconds >"$dir/$n-$way.truth" 2>"$dir/$n-$way.log"
        echo $? >"$dir/$n-$way.rc"
    done
    # A file that is there opens the gate.
    "$pycap" record -o "$dir/$n-wall.trace" -m 64M --wall --waker -F 99 -d 200 -- \
        "$python" testdata/programs/thread_clocks.py 2 / >"$dir/$n-wall.truth" 2>"$dir/$n-wall.log"
    echo $? >"$dir/$n-wall.rc"
    idle $n "$python"
    # Several events at once, tracepoints among them; and growth.
    "$pycap" record -v -o "$dir/$n-events.trace" -d 200 -m 16M -F 99 -e cpu-clock,page-faults \
        -e syscalls:sys_enter_openat -e syscalls:sys_enter_write/weight=count,unit=bytes/ -e sched:sched_process_fork -- \
        "$python" testdata/programs/hits.py 200 2 / >"$dir/$n-events.truth" 2>"$dir/$n-events.log"
    echo $? >"$dir/$n-events.rc"
    PYCAP_VERIFIER_STATS=1 "$pycap" record -v -o "$dir/$n-growth.trace" -d 200 --unwind none -e memory-growth -- \
        "$python" testdata/programs/leaks.py both 32 1 / 4 >"$dir/$n-growth.truth" 2>"$dir/$n-growth.log"
    echo $? >"$dir/$n-growth.rc"
    # Four processes want one CPU, until the file is there: threads that wait for it are an event, which a program that only
    # begins cannot be.
    "$pycap" record -o "$dir/$n-runq-%t.trace" -d 200 -F 99 --on-demand --after 2 --when 'runq>1.5,for=200ms' -- "$python" -c '
import glob, os, sys, time

def spins(seconds):
    end, files = time.monotonic() + seconds, glob.escape(sys.argv[1]) + "-*.trace"
    while time.monotonic() < end and not glob.glob(files):
        sum(range(1000))

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(3):
    if not os.fork():
        break
spins(10)' "$dir/$n-runq" 2>"$dir/$n-runq.log"
    echo $? >"$dir/$n-runq.rc"
    n=$((n + 1))
done
