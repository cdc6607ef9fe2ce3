# SPDX-License-Identifier: Apache-2.0
"""The last lines of a recording: true of its file, in words that fit the events, and of use as they stand.

That their numbers are those of pysym's summary every recording of the fixture `pycap` is asked (end_counts.py).
"""
import json
import os
import re
import subprocess
import time

import pytest

import end_counts
from conftest import PYCAP, PYSYM, PYTHON

pytestmark = pytest.mark.usefixtures("needs_bpf")

WORK = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: sum(range(1000))"
# A pool whose helpers see a moment after their program that it has ended.
POOL = """
import multiprocessing
def work(n): return sum(range(n))
if __name__ == "__main__":
    multiprocessing.set_start_method("{}")
    with multiprocessing.Pool(2) as pool: pool.map(work, [200000] * 4)
"""


@pytest.mark.parametrize("options", [(), ("--wall",)], ids=["clock", "wall"])
def test_programs_that_are_executed(pycap, pysym, tmp_path, options):
    """Those without a sample are not counted, whatever was written of them; one process that executes itself is one."""
    program = tmp_path / "again.py"
    program.write_text("import os, subprocess, sys, time\n" + WORK.format(0.2) + "\nfor i in range(25): subprocess.run(['/bin/true'])\n"
                       "if len(sys.argv) < 2: os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])\n")
    done = pycap("record", "-F", "499", *options, "-o", tmp_path / "t.bin", "--", PYTHON, program)  # compares with the summary
    assert done.returncode == 0, done.stderr
    summary = json.loads(pysym(tmp_path / "t.bin", "-f", "summary", "--json").stdout)
    pids = [row["pid"] for row in summary["processes"] if row["process"] == "again.py"]
    assert pids and len(pids) == len(set(pids)), summary["processes"]


def test_no_ticks_of_faults(pycap, tmp_path):
    done = pycap("record", "-v", "-e", "page-faults", "-o", tmp_path / "t.bin", "--", PYTHON, "-c", "[bytearray(9000) for i in range(20000)]")
    assert re.search(r"^[\d,]+ of [\d,]+ samples? of page-faults on all CPUs fell on the processes asked for; ", done.stderr, re.M), done.stderr
    assert "Ticks" not in done.stderr and " ticks" not in done.stderr


def test_nothing_to_show(pycap):
    done = pycap("record", "-o", "/dev/null", "--", PYTHON, "-c", WORK.format(0.2))
    assert done.returncode == 0 and "Recorded " in done.stderr and "Next:" not in done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_helpers_that_end(pycap, pysym, tmp_path, method):
    """They are not left behind; and the program that was started is named first."""
    program = tmp_path / "pool.py"
    program.write_text(POOL.format(method))
    done = pycap("record", "-F", "199", "-o", tmp_path / "t.bin", "--", PYTHON, program)
    assert done.returncode == 0 and "runs on" not in done.stderr, done.stderr
    assert re.search(r"^pool\.py \(pid \d+\)", pysym(tmp_path / "t.bin").stdout, re.M)


def test_child_that_is_left(pycap, tmp_path):
    """It is called by what it runs."""
    program = tmp_path / "leaves.py"
    program.write_text("import subprocess, sys\nwith subprocess.Popen([sys.executable, '-m', 'http.server', '0', '--bind', '127.0.0.1'], "
                       "stderr=-1, stdout=-1, text=True, env={'PYTHONUNBUFFERED': '1'}) as p:\n    p.stdout.readline()\n    import os; os._exit(0)\n")
    done = pycap("record", "-F", "199", "-o", tmp_path / "t.bin", "--", PYTHON, program)
    left = re.search(r"its child (\d+) \((.*)\) runs on", done.stderr)
    assert left, done.stderr
    os.kill(int(left[1]), 9)
    assert left[2] == "-m http.server"


def test_time_that_was_not_seen(pycap, tmp_path):
    """No sample was lost, and yet not all was seen: both are said."""
    done = pycap("record", "--backend", "proc", "-F", "20", "-o", tmp_path / "t.bin", "--", PYTHON, "-c",
                 "import subprocess, sys\nfor i in range(30): subprocess.run([sys.executable, '-ISc', 'sum(range(200000))'])\nsum(range(30000000))")
    if "children_unseen" not in done.stderr:
        pytest.skip("pycap looked at every child")
    assert re.search(r"^(No sample was lost, but|.*, and) [\d.]+ s of CPU time of child processes was not seen\.$", done.stderr, re.M), done.stderr


@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_child_of_what_it_records(tmp_path, backend):
    """A program that records itself is pycap's parent: when it is killed pycap ends, which is not one of its children to wait for."""
    trace, program = tmp_path / "t.bin", tmp_path / "self.py"
    program.write_text(f"""
import os, signal, subprocess, time
recorder = subprocess.Popen([{str(PYCAP)!r}, "record", "--backend", {backend!r}, "-p", str(os.getpid()), "-o", {str(trace)!r}],
                            stdout=subprocess.DEVNULL, stderr=open({str(tmp_path / "said")!r}, "w"), start_new_session=True)
print(recorder.pid, flush=True)
while not os.path.exists({str(trace)!r}): time.sleep(0.01)
end = time.process_time() + 0.3
while time.process_time() < end: pass
os.kill(os.getpid(), signal.SIGKILL)
""")
    done = subprocess.run([PYTHON, program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -9
    said = tmp_path / "said"
    for _ in range(600):
        if "Recorded" in said.read_text():
            break
        time.sleep(0.1)
    else:
        os.kill(int(done.stdout), 9)
        pytest.fail(said.read_text())


def test_archive_that_was_not_given(pycap, pysym, tmp_path):
    """Where there is one the advice is to use it, not to record another one."""
    library = tmp_path / "libgone.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", library, "-xc", "-"], check=True, text=True,
                   input="double burn(int n){volatile double x = 1; for (int i = 0; i < n; i++) x = x * 1.01 + .1; return x;}")
    program = tmp_path / "work.py"
    program.write_text(f"import ctypes, time\nlibrary = ctypes.CDLL('{library}')\nend = time.process_time() + 0.4\n"
                       "while time.process_time() < end: library.burn(100000)\n")
    advice = {}
    for name, options in (("with", ["--archive", tmp_path / "a.tar"]), ("without", [])):
        assert pycap("record", "-F", "199", *options, "-o", tmp_path / f"{name}.bin", "--", PYTHON, program).returncode == 0
        library.rename(tmp_path / "moved")
        advice[name] = pysym(tmp_path / f"{name}.bin", "-f", "summary", "--no-host").stdout
        if name == "with":
            assert "missing here" not in pysym(tmp_path / "with.bin", "-f", "summary", "--archive", tmp_path / "a.tar").stdout
        (tmp_path / "moved").rename(library)
    assert "run pysym with the --archive FILE that was recorded with it" in advice["with"] and "record with" not in advice["with"]
    assert "record with --archive FILE" in advice["without"]


def test_event_of_a_flight_recorder(pycap, tmp_path):
    """What is in the file is said, and how much there was in all."""
    done = pycap("record", "--on-demand", "--before", "300ms", "-F", "199", "-o", tmp_path / "t-%t.bin", "--", PYTHON, "-c",
                 WORK.format(2.5).replace("process_time", "monotonic") + "\nraise SystemExit(3)")
    said = re.search(rf"^Recorded {end_counts.NUMBER} samples in ([\d.]+) s into (.*) \(.*\); {end_counts.NUMBER} were taken in all, in ([\d.]+) s\.$",
                     done.stderr, re.M)
    assert said and float(said[2]) < float(said[5]) and end_counts.number(said[1]) < end_counts.number(said[4]), done.stderr
    end_counts.compare(PYSYM, done.stderr)
