# SPDX-License-Identifier: Apache-2.0
"""make soak: pycap at 999 Hz for SOAK_MINUTES (10 unless told), while processes fork, exec, start threads, reload
modules and open libraries. Three parts: on a disk that keeps up, through a pipe whose reader stalls, onto a full disk.

What must hold: pycap ends as it should, every tick its sampler saw is a sample or counted by name, files read, and
memory is flat. Prints the figures; exits with 1 when something does not hold.

Environment: SOAK_MINUTES, SOAK_PROCESSES (200), PYCAP, PYSYM.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import accounts  # noqa: E402

PYCAP = os.environ.get("PYCAP", str(ROOT / "build/pycap"))
PYSYM = os.environ.get("PYSYM", str(ROOT / "build/pysym"))
HZ = 999
PERIOD_NS = 1_000_000_000 // HZ
MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
PROCESSES = os.environ.get("SOAK_PROCESSES", "200")
LOAD = [sys.executable, str(ROOT / "tests/soak/load.py")]
# Memory is flat when its peak in the last third of a part is that of the third before. The first third is left out: in
# it the load starts, each process is met with its first stacks, and tables take the size that an epoch needs. What may
# differ is one more doubling, which depends on chance, of the largest table: the trie of stacks, from 0.75 MiB to 1.5.
FLAT_KIB = 2048
RING_KIB = 4096
# Of what the buffer holds: the queue and its spare, each up to twice as long, and as much again for blocks and order.
SLOW_FACTOR = 5
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"  FAILED: {what}")


def resident_kib(pid):
    """What was allocated: not the files mapped, nor the buffers and arrays that are shared with the kernel."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))
    except (OSError, ValueError, StopIteration):
        return 0


def idle_ns():
    """Of all CPUs, as the kernel accounts it, with what a hypervisor took: in neither does anything tick."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = f.readline().split()
    return (int(fields[4]) + int(fields[5]) + int(fields[8])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def peaks(memory):
    """KiB: in the second and in the last third, and the seconds from the one third to the other."""
    if len(memory) < 9:
        return 0, 0, 0
    end = memory[-1][0]
    return (max(v for t, v in memory if end / 3 < t <= 2 * end / 3), max(v for t, v in memory if t > 2 * end / 3), end / 3)


def record(seconds, output, *options):
    """One recording of the load; returns the finished process's (code, stderr), and its memory over time."""
    memory = []
    with tempfile.TemporaryFile("w+") as err:
        recorder = subprocess.Popen([PYCAP, "record", "-v", "-F", str(HZ), *options, "-o", str(output), "--", *LOAD, str(seconds),
                                     PROCESSES], stderr=err, stdout=subprocess.DEVNULL)
        start = time.monotonic()
        while recorder.poll() is None:
            time.sleep(1)
            kib = resident_kib(recorder.pid)
            if kib:
                memory.append((time.monotonic() - start, kib))
        err.seek(0)
        return recorder.returncode, err.read(), memory


def tell(name, code, err, memory, account):
    print(f"{name}: exit {code}")
    before, after, seconds = peaks(memory)
    processes = len({(s.pid, s.start_ns) for s in account.samples})
    each = FLAT_KIB * 1024 * 3 / max(processes, 1)
    print(f"  memory of its own: at most {before} KiB in the second third, {after} KiB in the last ({after - before:+d} KiB in "
          f"{seconds:.0f} s, {FLAT_KIB} allowed: to keep {each:.0f} bytes of each process sampled would show)")
    print(f"  {account.text()}")
    for line in err.splitlines():
        if line.startswith(("Cost", "Ticks", "The rate", "Recorded", "Python stacks")):
            print(f"  {line}")
    check(account.residue == 0, f"{name}: {account.residue} ticks are not accounted for")
    check("AddressSanitizer" not in err and "runtime error" not in err, f"{name}: {err}")
    return before, after


def main():
    if os.geteuid():
        sys.exit("make soak needs root")
    seconds = 60 * MINUTES
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        # A disk that keeps up, and a buffer that is never full: the rate stays, so the kernel's count tells what was due.
        trace = folder / "steady.bin"
        before_ns = idle_ns()
        code, err, memory = record(0.6 * seconds, trace, "-m", "64M")
        spent_idle_ns = idle_ns() - before_ns
        account = accounts.read(PYSYM, trace)
        steady, grown = tell("steady", code, err, memory, account)
        due = (account.count_ns - spent_idle_ns) / PERIOD_NS
        busy = account.seen - account.idle
        skipped = account.losses["tick_skipped"]
        residue = due - busy - skipped
        # Idle time before and after the recording is taken off as well, and makes it less. The rest is the grain of idle
        # time: pycap leaves out 4 of a hundredth of a second for each CPU, and there is one at each end here.
        grain = 6 * 10_000_000 * os.cpu_count() / PERIOD_NS
        print(f"  due by the kernel's count less idle: {due:.0f}, seen {busy}, skipped by pycap's account {skipped}, residue "
              f"{residue:.0f} ({100 * residue / due:.3f} %; the grain of idle time makes {grain:.0f} at most)")
        check(residue <= grain, f"steady: {residue:.0f} ticks are neither seen nor counted as skipped")
        check(code == 0 and account.ends == [2], f"steady: exit {code}, {err}")
        check(grown - steady <= FLAT_KIB, f"steady: memory grew by {grown - steady} KiB")

        # A pipe that is read in bursts. pycap waits in write(), the buffer fills, the rate steps down.
        fifo, trace = folder / "fifo", folder / "slow.bin"
        os.mkfifo(fifo)

        def read_slowly():
            with open(fifo, "rb", buffering=0) as source, open(trace, "wb") as to:
                stall = time.monotonic() + 5
                while data := source.read(4096):
                    to.write(data)
                    if time.monotonic() > stall:
                        time.sleep(4)
                        stall = time.monotonic() + 5
        reader = threading.Thread(target=read_slowly)
        reader.start()
        code, err, memory = record(0.3 * seconds, fifo, "--unwind", "snapshot", "-m", f"{RING_KIB}K")
        reader.join()
        account = accounts.read(PYSYM, trace)
        _, most = tell("slow disk", code, err, memory, account)
        check(code == 0 and account.ends == [2], f"slow disk: exit {code}, {err}")
        # After a stall all that the buffer held is put in order in memory: how much depends on the stall.
        check(most <= grown + SLOW_FACTOR * RING_KIB, f"slow disk: memory grew to {most} KiB")

        # A full disk: pycap says so and ends; what it had written reads.
        small = folder / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", small], check=True)
        try:
            code, err, memory = record(0.1 * seconds, small / "t.bin")
            account = accounts.read(PYSYM, small / "t.bin")
            print(f"full disk: exit {code}, {len(account.samples)} samples read; {err.splitlines()[-1] if err else ''}")
            check(code == 1 and "space" in err, f"full disk: exit {code}, {err}")
            check(account.samples, "full disk: nothing could be read")
        finally:
            subprocess.run(["umount", small], check=True)
    print("FAILED: " + "; ".join(failures) if failures else "all holds")
    sys.exit(bool(failures))


main()
