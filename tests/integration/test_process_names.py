# SPDX-License-Identifier: Apache-2.0
"""pycap calls processes by their names: workers after the program they work for, beside the titles that they gave themselves.

So `pycap info`, `--comm` and the trace, in which the parents of a worker are, also where they have no sample.
"""
import os
import re
import subprocess
import time

import pytest

from conftest import PYCAP, PYSYM, PYTHON, why_no_bpf

# Sets the kernel's name and the command line, as setproctitle does.
TITLE = """
import ctypes, os, sys, time
def title(text):
    libc, text = ctypes.CDLL(None), text.encode()
    stat = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    start, end = int(stat[45]), int(stat[46])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, min(len(text), end - start - 1))
    ctypes.memmove(end - 1, b"x", 1)  # so that the kernel looks behind it for more, and takes it for a title
    libc.prctl(15, text, 0, 0, 0)
def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(2000))
"""
# Begins workers in each way there is, and sleeps; they work until its end.
MASTER = """
import multiprocessing, os, subprocess, sys, time
def work(master):
    while os.path.exists(f"/proc/{master}"):
        sum(range(20000))
        time.sleep(0.001)
if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        multiprocessing.get_context(method).Process(target=work, args=(os.getpid(),), daemon=True).start()
    loop = "import os, time\\np = os.getppid()\\nwhile os.getppid() == p: sum(range(20000)); time.sleep(0.001)"
    subprocess.Popen([sys.executable, "-m", "loky.backend.popen_loky_posix"], cwd=os.path.dirname(os.path.abspath(__file__)))
    subprocess.Popen([sys.executable, "-c", loop])
    print("ready", flush=True)
    sys.stdin.read()
"""
LOKY = "import os, time\np = os.getppid()\nwhile os.getppid() == p:\n    sum(range(20000))\n    time.sleep(0.001)\n"


def run_pycap(*arguments, code=0):
    done = subprocess.run([PYCAP, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    return done


def read_trace(trace):
    """The trace's processes in order: (pid, parent, program), each once; and the pids that have samples."""
    text = subprocess.run([PYSYM, "--format", "dump", trace], capture_output=True, text=True, timeout=120, check=True).stdout
    texts = dict(re.findall(r'^string id=(\d+) data="(.*)"$', text, re.M))
    processes = []
    for line in re.findall(r"^process (.*)$", text, re.M):
        fields = dict(field.split("=") for field in line.split())
        row = (int(fields["tgid"]), int(fields["parent_tgid"]), texts.get(fields["program"], ""))
        if row not in processes:
            processes.append(row)
    return processes, text, texts


def start(*command):
    process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A program that sleeps, and its workers."""
    folder = tmp_path_factory.mktemp("master")
    (folder / "shopd.py").write_text(MASTER)
    package = folder / "loky/backend"
    package.mkdir(parents=True)
    (package / "popen_loky_posix.py").write_text(LOKY)
    with start(PYTHON, folder / "shopd.py") as process:
        yield process
        process.kill()


def table(pids):
    """What pycap info says of these: {pid: (name, title)}."""
    lines = run_pycap("info").stdout.splitlines()
    assert any(re.match(r" +PID  NAME +TITLE ", line) for line in lines)
    rows = {}
    for line in lines:
        found = re.match(r" *(\d+)  (.*?)  +(\S.*?)  +\d\.\d", line)
        if found and int(found[1]) in pids:
            rows[int(found[1])] = (found[2], found[3])
    return rows


def below(pid):
    """The pids of a process and of all below it."""
    found = [pid]
    for known in found:
        path = f"/proc/{known}/task/{known}/children"
        with open(path) as children:
            found += map(int, children.read().split())
    return found


WORKERS = {"shopd.py", "shopd.py (spawn)", "shopd.py (forkserver)", "shopd.py (loky)", "shopd.py (-c)"}


@pytest.mark.smoke
def test_names_of_workers(needs_bpf, master):
    """In info: each is called after the program that it works for."""
    names = [name for name, _ in table(below(master.pid)).values()]
    assert WORKERS <= set(names) <= WORKERS | {"shopd.py (resource_tracker)"}
    assert names.count("shopd.py (forkserver)") == 2  # the server, and its worker


@pytest.mark.smoke("bpf")
@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_master_without_a_sample(backend, master, tmp_path):
    """It is in the trace, before its workers, whether it was asked for or only one of them."""
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    pids = below(master.pid)
    workers = {pid: name for pid, (name, _) in table(pids).items()}
    spawned = next(pid for pid, name in workers.items() if name == "shopd.py (spawn)")
    forked = [pid for pid, name in workers.items() if name == "shopd.py (forkserver)"]
    trace = tmp_path / "t.bin"
    run_pycap("record", "-q", "-F", "499", "-d", "1", "--backend", backend, "-o", trace, "-p", master.pid)
    processes, _, _ = read_trace(trace)
    assert processes[0] == (master.pid, os.getpid(), "shopd.py") and len(processes) > 1
    seen = set()
    for pid, parent, _ in processes:
        assert parent in seen or pid == master.pid, "a parent stands behind its child"
        seen.add(pid)
    for worker in (spawned, max(forked)):  # the server of which begins before its worker
        run_pycap("record", "-q", "--wall", "-F", "99", "-d", "1", "--backend", backend, "-o", trace, "-p", worker)
        processes, text, _ = read_trace(trace)
        assert [pid for pid, _, _ in processes] == ([master.pid] if worker == spawned else [master.pid, min(forked)]) + [worker]
        parent = re.search(rf"^process .* tgid={master.pid} .*$", text, re.M)[0]
        assert " cgroup=0 " in parent and " pid_namespace=0 " in parent and " program=0" not in parent


@pytest.mark.parametrize("comm", ["shopd.py", "shopd.py (loky)", "loky.backend.popen_loky_posix"])
def test_comm_takes_names(needs_bpf, master, tmp_path, comm):
    """--comm takes a name, that of the program for all that work for it, and the name of the helper."""
    trace = tmp_path / "t.bin"
    run_pycap("record", "-q", "--wall", "-F", "99", "-d", "1", "-o", trace, "--comm", comm)
    _, text, _ = read_trace(trace)
    sampled = {int(tgid) for tgid in re.findall(r"^process .* tgid=(\d+) .* cgroup=[1-9]", text, re.M)}
    pids = table(below(master.pid))
    wanted = {pid for pid, (name, _) in pids.items() if name != "shopd.py" and (comm == "shopd.py" or "loky" in name)}
    assert sampled and sampled <= wanted | {master.pid} and (len(wanted) > 1 or sampled >= wanted)


# ---- titles ----

TITLED = TITLE + """
title(sys.argv[1])
print("ready", flush=True)
while not sys.stdin.closed:
    sum(range(20000))
    time.sleep(0.001)
"""


# Workers that have replaced their command lines before pycap comes.
TITLED_MASTER = TITLE + MASTER.replace("def work(master):\n", "def work(master):\n    title('a worker of some work, titled')\n", 1)


def test_titled_workers_seen_late(needs_bpf, tmp_path):
    """They are called as if they had been seen before they had titles: also by --comm."""
    (tmp_path / "lated.py").write_text(TITLED_MASTER)
    package = tmp_path / "loky/backend"
    package.mkdir(parents=True)
    (package / "popen_loky_posix.py").write_text(TITLE + "title('a worker of loky, titled')\n" + LOKY)
    with start(PYTHON, tmp_path / "lated.py") as process:
        try:
            deadline = time.monotonic() + 60
            titles = []
            while len(titles) < 3 and time.monotonic() < deadline:
                titles = [row for row in table(below(process.pid)).values() if row[1].startswith("a worker of")]
            names = {name for name, _ in titles}
            assert names == {"lated.py (spawn)", "lated.py (forkserver)", "lated.py (loky)"}
            trace = tmp_path / "t.bin"
            run_pycap("record", "-q", "--wall", "-F", "99", "-d", "1", "-o", trace, "--comm", "lated.py (loky)")
            assert "loky.backend.popen_loky_posix" in {name for _, _, name in read_trace(trace)[0]}
        finally:
            process.kill()


WORD = "zwxq"  # that no other process here has


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    script = tmp_path_factory.mktemp("titled") / "maild.py"
    script.write_text(TITLED)
    with start(PYTHON, script, f"{WORD}: worker of all mails") as process:
        yield process
        process.kill()


@pytest.mark.smoke
def test_name_and_title(needs_bpf, titled, tmp_path):
    """A title that has replaced the command line stands beside the name, and both choose the process; a part of it is no name."""
    assert table([titled.pid]) == {titled.pid: ("maild.py", f"{WORD}: worker of")}
    for comm in ("maild.py", f"{WORD}: worker of all mails", f"{WORD}: worker of"):
        trace = tmp_path / "t.bin"
        done = run_pycap("record", "--wall", "-F", "99", "-d", "1", "-o", trace, "--comm", comm)
        assert "no process" not in done.stderr
        assert (titled.pid, os.getpid(), "maild.py") in read_trace(trace)[0]
    done = run_pycap("record", "-F", "499", "-d", "0.1", "-o", trace, "--comm", WORD, code=1)
    assert f"no process is named '{WORD}'; there is 'maild.py' with the title '{WORD}: worker of'" in done.stderr


def test_comm_of_a_program_that_begins(needs_bpf, tmp_path):
    """One that begins while it is recorded is found by its name, in the middle of exec as it is."""
    script, trace = tmp_path / "late-service.py", tmp_path / "t.bin"
    script.write_text("import time\nend = time.process_time() + 1\nwhile time.process_time() < end: sum(range(1000))\n")
    other = tmp_path / "other.py"
    other.write_text(script.read_text())
    program = f"import subprocess\nfor s in {[str(other), str(script)]}: subprocess.Popen([{PYTHON!r}, s])\n" \
              "import os\nfor _ in range(2): os.wait()\n"
    run_pycap("record", "-q", "-F", "499", "-o", trace, "--comm", "late-service.py", "--", PYTHON, "-c", program)
    processes, text, _ = read_trace(trace)
    assert "late-service.py" in {name for _, _, name in processes} and "other.py" not in {name for _, _, name in processes}
    assert len(re.findall("^ +sample ", text, re.M)) > 50


FORKED = TITLE + """
title("acme: master")
for name in ("mail", "pdf"):
    if not os.fork():
        busy(0.25)
        title("acme: %s worker" % name)
        busy(0.8)  # what changes a title is applied with the samples, some tenths of a second later
        os._exit(0)
for _ in range(2):
    os.wait()
"""


@pytest.mark.smoke("bpf")
@pytest.mark.parametrize("backend", ["bpf", "proc"])
def test_titles_set_late(backend, tmp_path):
    """A worker has its parent's title first; the newest one is in the trace, and its command line where that was asked for."""
    if backend == "bpf" and why_no_bpf():
        pytest.skip(why_no_bpf())
    script, trace = tmp_path / "acmed.py", tmp_path / "t.bin"
    script.write_text(FORKED)
    command = ["--", PYTHON, script, "room-for-a-long-title"]
    run_pycap("record", "-q", "-F", "499", "--backend", backend, "--cmdline", "-o", trace, *command)
    summary = subprocess.run([PYSYM, "-f", "summary", "-v", trace], capture_output=True, text=True, timeout=120, check=True).stdout
    assert re.findall(r"^ +(acme: .*)$", summary, re.M)[0] == "acme: master"
    assert sorted(re.findall(r"^ +(acme: .*)$", summary, re.M)[1:]) == ["acme: mail worker", "acme: pdf worker"]
    run_pycap("record", "-q", "-F", "499", "--backend", backend, "-o", trace, *command)
    _, text, texts = read_trace(trace)
    renamed = {texts[comm] for comm in re.findall(r"^process_name .* comm=(\d+) cmdline=0$", text, re.M)}
    assert renamed >= {"acme: mail work", "acme: pdf worke"}
    assert "acme: mail worker" not in texts.values()


def test_titles_without_end(needs_bpf, tmp_path):
    """A process that changes its title all the time has its command line read now and then."""
    script, trace = tmp_path / "t.py", tmp_path / "t.bin"
    script.write_text(TITLE + "end, i = time.monotonic() + 1, 0\n"
                              "while time.monotonic() < end:\n    title('t%d' % i)\n    i += 1\n")
    run_pycap("record", "-q", "-F", "199", "--cmdline", "-o", trace, "--", PYTHON, script, "room-for-a-long-title")
    _, text, _ = read_trace(trace)
    read = re.findall(r"^process_name .* cmdline=[1-9]\d*$", text, re.M)
    assert 1 <= len(read) <= 20 < len(re.findall(r"^process_name ", text, re.M))


# ---- what an exec goes through ----

def test_folder_of_a_hash(needs_bpf, tmp_path):
    """What a pex unpacks is in a folder whose name is a hash: it is called what its pid ran before."""
    folder = tmp_path / ("1e249ab5" * 5)
    folder.mkdir()
    (folder / "__main__.py").write_text("end = __import__('time').process_time\nwhile end() < 0.3: sum(range(1000))\n")
    script, trace = tmp_path / "shop.pex", tmp_path / "t.bin"
    script.write_text(f"import os, sys, time\nwhile time.process_time() < 0.3: sum(range(1000))\n"
                      f"os.execv(sys.executable, [sys.executable, {str(folder)!r}])\n")
    run_pycap("record", "-q", "-F", "499", "-o", trace, "--", PYTHON, script)
    processes, text, _ = read_trace(trace)
    assert {name for _, _, name in processes} == {"shop.pex"}
    assert len(set(re.findall(r"^process .* exec_generation=(\d+)", text, re.M))) == 2


def test_command_is_one_process(needs_bpf, tmp_path):
    """What pycap starts is not called pycap, and has one record, wherever in its exec a sample fell."""
    trace = tmp_path / "t.bin"
    for _ in range(4):
        run_pycap("record", "-q", "-F", "9999", "-o", trace, "--", PYTHON, "-c", "sum(range(5000000))")
        _, text, texts = read_trace(trace)
        assert len(re.findall("^process ", text, re.M)) == 1 and "pycap" not in texts.values()
