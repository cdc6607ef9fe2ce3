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
# A minute's growth that is none: epochs of a minute come and go, and names are met for the first time.
FLAT_KIB_A_MINUTE = 2048
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"  FAILED: {what}")


def resident_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith(("Private_Dirty:", "Private_Clean:")))
    except (OSError, ValueError):
        return 0


def idle_ns():
    """Of all CPUs, as the kernel accounts it."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = f.readline().split()
    return (int(fields[4]) + int(fields[5])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def slope(points):
    """KiB a minute, by least squares."""
    if len(points) < 3:
        return 0.0
    n = len(points)
    mean_t, mean_v = sum(t for t, _ in points) / n, sum(v for _, v in points) / n
    var = sum((t - mean_t) ** 2 for t, _ in points)
    return 60 * sum((t - mean_t) * (v - mean_v) for t, v in points) / var


def record(seconds, output, *options):
    """One recording of the load; returns the finished process's (code, stderr), and its memory over time."""
    memory = []
    with tempfile.TemporaryFile("w+") as err:
        recorder = subprocess.Popen([PYCAP, "record", "-F", str(HZ), *options, "-o", str(output), "--", *LOAD, str(seconds),
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
    # Names, tables and caches fill up first: what counts is the later half.
    later = memory[len(memory) // 2:]
    if memory:
        print(f"  memory: {memory[-1][1]} KiB of its own at the end, {max(v for _, v in memory)} at most; "
              f"{slope(later):+.0f} KiB a minute in the later {later[-1][0] - later[0][0]:.0f} s")
    print(f"  {account.text()}")
    for line in err.splitlines():
        if line.startswith(("Cost", "The rate", "Recorded", "Python stacks")):
            print(f"  {line}")
    check(account.residue == 0, f"{name}: {account.residue} ticks are not accounted for")
    check("AddressSanitizer" not in err and "runtime error" not in err, f"{name}: {err}")
    return slope(later), later


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
        growth, later = tell("steady", code, err, memory, account)
        due = (account.count_ns - spent_idle_ns) / PERIOD_NS
        busy = account.seen - account.idle
        skipped = account.losses["tick_skipped"]
        print(f"  due by the kernel's count less idle: {due:.0f}, seen {busy}, skipped by pycap's account {skipped}, "
              f"residue {due - busy - skipped:.0f} ({100 * (due - busy - skipped) / due:.3f} %): the grain of idle time, and "
              "idle time before and after")
        check(code == 0 and account.ends == [2], f"steady: exit {code}, {err}")
        if later and later[-1][0] - later[0][0] >= 60:
            check(growth < FLAT_KIB_A_MINUTE, f"steady: memory grows by {growth:.0f} KiB a minute")

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
        code, err, memory = record(0.3 * seconds, fifo, "--unwind", "snapshot")
        reader.join()
        account = accounts.read(PYSYM, trace)
        growth, later = tell("slow disk", code, err, memory, account)
        check(code == 0 and account.ends == [2], f"slow disk: exit {code}, {err}")
        if later and later[-1][0] - later[0][0] >= 60:
            check(growth < 4 * FLAT_KIB_A_MINUTE, f"slow disk: memory grows by {growth:.0f} KiB a minute")

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
