# SPDX-License-Identifier: Apache-2.0
"""pycap top on a terminal begins, stops, goes on and ends, and leaves the terminal as it was."""
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conftest import PYCAP, PYTHON
from screen import Screen, WAIT_S

BURN = """
import sys, time
print("noise from the command"); print("and an error", file=sys.stderr)
def burn():
    while True:
        sum(range(1000))
burn()
"""


@pytest.fixture
def screen(tmp_path):
    made = Screen(tmp_path)
    yield made
    made.close()


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "burn_for_top.py"
    path.write_text(BURN)
    return path


def begin(screen, program, *options):
    """Starts it in the shell; waits until the command's function is on the screen."""
    screen.wait(r"^\$ *$")
    screen.type(f"stty -g >before; {PYCAP} top --backend proc {' '.join(options)} -- {PYTHON} {program}; echo \"code $?\"; "
                "stty -g | cmp before - && echo same")
    screen.press("Enter")
    screen.wait(r"\bburn \(burn_for")
    assert screen.is_other_screen()


def started(folder):
    """When the process of a folder of /proc was started, in ticks since boot."""
    return int((folder / "stat").read_text().rpartition(")")[2].split()[19])


def processes(word):
    """Those, started after this one, that have the word in their command lines: another one may hold up who reads its own."""
    found, first = [], started(pathlib.Path("/proc/self"))
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if started(folder) >= first and word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def fact(pid, name):
    """Of /proc/PID/status; "" of a process that has ended meanwhile."""
    try:
        return re.search(rf"^{name}:\s*(.*)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]
    except OSError:
        return ""


def wait_until(true, what):
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def expect_end(screen, code, program):
    text = screen.wait(f"code {code}\nsame")
    assert not screen.is_other_screen()
    assert "samples/s" not in text and "noise" not in text and "and an error" not in text, text
    # The recorder and the command end as well; what the shell waits for is the first process.
    wait_until(lambda: not [p for p in processes(str(program)) if "pytest" not in fact(p, "Name") and p != os.getpid()], "a process is left")
    return text


@pytest.mark.live
@pytest.mark.smoke("q", load=True)
@pytest.mark.parametrize("key", ["q", "C-c"])
def test_quit(key, screen, program):
    begin(screen, program)
    screen.press(key)
    expect_end(screen, 0, program)


@pytest.mark.live
def test_event_for_others(screen, program):
    """pkill -USR1 -x pycap reports an event to recorders that stand by: a view is none, and goes on."""
    begin(screen, program)
    ours = [p for p in processes(str(program)) if fact(p, "Name") == "pycap"]
    assert len(ours) == 2, ours
    for pid in ours:
        os.kill(pid, signal.SIGUSR1)
    screen.press("q")
    expect_end(screen, 0, program)


@pytest.mark.live
def test_stop_and_go_on(screen, program):
    """Ctrl-Z gives the screen back, fg takes it again, and what was recorded meanwhile is there."""
    begin(screen, program)
    screen.press("C-z")
    screen.wait("Stopped")
    assert not screen.is_other_screen()
    screen.type("fg")
    screen.press("Enter")
    screen.wait(r"\bburn \(burn_for")
    assert screen.is_other_screen()
    screen.press("q")
    wait_until(lambda: not screen.is_other_screen(), screen.text())


@pytest.mark.live
def test_end_of_a_stopped_job(screen, program):
    """kill %1 of a job that Ctrl-Z stopped ends it; in the background it would be stopped again for each thing it does to the terminal."""
    begin(screen, program)
    screen.press("C-z")
    screen.wait("Stopped")
    screen.type("kill %1; fg; echo over")
    screen.press("Enter")
    screen.wait("^over")
    wait_until(lambda: not [p for p in processes(str(program)) if "pytest" not in fact(p, "Name") and p != os.getpid()], "a process is left")
    assert not screen.is_other_screen()
    screen.type("stty -g | cmp before - && echo same")
    screen.press("Enter")
    screen.wait("^same")


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGKILL])
def test_end_of_the_first_process(screen, program, number):
    """The view and the recorder end with it."""
    begin(screen, program)
    first = [p for p in processes(str(program)) if fact(p, "Name") == "pycap" and fact(int(fact(p, "PPid")), "Name") == "sh"]
    assert len(first) == 1, first
    os.kill(first[0], number)
    screen.wait("code ")
    wait_until(lambda: not [p for p in processes(str(program)) if "pytest" not in fact(p, "Name") and p != os.getpid()], "a process is left")
    wait_until(lambda: not screen.is_other_screen(), screen.text())


@pytest.mark.usefixtures("needs_bpf")
def test_figures_are_of_their_interval(pysym, program, tmp_path):
    """
    What a recorder streams says until when all is written only after the samples up to then: the view ends its intervals there. Said
    too early, each second would have samples that come late. A recorder that stands still between the samples and the clock has them once.
    """
    trace = tmp_path / "t.bin"
    with open(trace, "wb") as out, subprocess.Popen([PYCAP, "record", "-q", "-F", "499", "-o", "-", "--", PYTHON, program],
                                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
        with subprocess.Popen(["cat"], stdin=recorder.stdout, stdout=out):
            wait_until(lambda: pysym(trace, "-f", "dump").stdout.count("\nclock ") > 4, "too few clocks")
            recorder.send_signal(signal.SIGINT)
    clocks, late = [], set()
    for line in pysym(trace, "-f", "dump").stdout.splitlines():
        found = re.match(r" *(clock|sample)\b.* (?:monotonic_ns|time_ns)=(\d+)", line)
        if found and found[1] == "clock":
            clocks.append(int(found[2]))
        elif found and len(clocks) > 1 and int(found[2]) < clocks[-1] - 500_000_000:  # what is on its way a moment before is written later
            late.add(clocks[-1])
    assert len(clocks) > 4 and len(late) < len(clocks) / 2, (clocks, late)


@pytest.mark.live
def test_end_of_the_recording(screen, program):
    """The last figures stay until they have been seen."""
    begin(screen, program, "-d", "3")
    screen.wait("the recording ended when its duration was over")
    assert "burn (burn_for" in screen.text()
    screen.press("q")
    expect_end(screen, r"\d+", program)


@pytest.mark.live
def test_view_that_is_killed(screen, program):
    """The terminal is put right by pycap, which says what happened."""
    begin(screen, program)
    # Of the view's parent the command line names the program.
    ours = [p for p in processes("pysym\0-f\0live") if fact(p, "PPid") in map(str, processes(str(program)))]
    assert len(ours) == 1, ours
    os.kill(ours[0], signal.SIGKILL)
    text = expect_end(screen, 137, program)
    assert "pysym was ended by signal 9" in text, text


def test_needs_a_terminal(program):
    done = subprocess.run([PYCAP, "top", "--backend", "proc", "--", PYTHON, program], capture_output=True, text=True, check=False,
                          timeout=WAIT_S)
    assert done.returncode == 2 and done.stdout == ""
    assert "needs a terminal" in done.stderr and not re.search("\x1b", done.stderr), done.stderr


@pytest.mark.parametrize("options, word", [(["-o", "x"], "o"), (["--sort", "name"], "self or total"), (["123"], "pycap top -p 123")])
def test_mistakes(options, word):
    done = subprocess.run([PYCAP, "top", *options], capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 2 and word in done.stderr, done.stderr
