# SPDX-License-Identifier: Apache-2.0
"""pycap runs with each set of capabilities, and gives up what it needs no more.

As a user who is not root, with one set of capabilities after the other.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import accounts
from conftest import PYCAP, PYSYM, ROOT, cpu_seconds, later

PYTHON = "/usr/bin/python3"
NEEDED = ["bpf", "perfmon"]
USEFUL = ["sys_ptrace", "checkpoint_restore", "dac_read_search", "syslog", "sys_nice"]
OF_UNIT = [name for name in NEEDED + USEFUL if name != "sys_nice"]  # systemd gives the nice value itself
NUMBERS = {"dac_override": 1, "dac_read_search": 2, "kill": 5, "sys_ptrace": 19, "bpf": 39, "checkpoint_restore": 40}
OWN, OTHER = "65534", "65533"
# Longer than what the sampler sends of a name: the rest is read from the process's memory.
LONG = "f" * 700
PROGRAM = f"""
import os, time
def {LONG}():
    os.write(1, b"x")
    end = time.time() + 600
    while time.time() < end:
        for _ in range(1000):
            os.stat("/proc/self")
        time.sleep(0.005)
{LONG}()
"""


@pytest.fixture
def privileged(needs_bpf):
    if os.geteuid():
        pytest.skip("to give and take capabilities needs root")
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv")


def as_user(capabilities, *command, user=OWN):
    names = "".join(f",+{name}" for name in capabilities)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--inh-caps=-all{names}",
            f"--ambient-caps=-all{names}", f"--bounding-set=-all{names}", *map(str, command)]


def start(python, user=OWN):
    """PROGRAM; it writes a byte when it is where it stays."""
    return subprocess.Popen(as_user([], python, "-c", PROGRAM, user=user), stdout=subprocess.PIPE)


@pytest.fixture
def programs(privileged, place):
    """Four programs: of the user who records; another's; another's that only that one may read; another's, deleted."""
    started = {}
    binary = os.path.realpath(PYTHON)
    private, deleted = place / "private", place / "deleted"
    try:
        started["own"] = start(PYTHON)
        started["other"] = start(PYTHON, user=OTHER)
        for path, mode in ((private, 0o700), (deleted, 0o755)):
            shutil.copy(binary, path)
            os.chown(path, int(OTHER), int(OTHER))
            os.chmod(path, mode)
            started[path.name] = start(path, user=OTHER)
        for process in started.values():
            assert process.stdout.read(1) == b"x", "the program does not start"
        deleted.unlink()
        yield {name: process.pid for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.wait()
            process.stdout.close()


def record_programs(command, trace, programs):
    """Until each program has worked enough to be seen. What pycap said."""
    with subprocess.Popen([*command, "-p", ",".join(map(str, programs.values()))], stderr=subprocess.PIPE, text=True) as recorder:
        deadline, since = time.monotonic() + 300, None
        while recorder.poll() is None and time.monotonic() < deadline:
            if since is None and accounts.is_begun(trace):
                since = {pid: cpu_seconds(pid) for pid in programs.values()}
            if since and all(cpu_seconds(pid) - before > 0.2 for pid, before in since.items()):
                break
            time.sleep(0.05)
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=300)
    assert recorder.returncode == 0, said
    return said


def kernel_names_for_everybody():
    kptr = int(pathlib.Path("/proc/sys/kernel/kptr_restrict").read_text())
    return kptr == 0 and int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) <= 1


def maps_are_shown(capabilities, pid):
    return not subprocess.run(as_user(capabilities, "cat", f"/proc/{pid}/maps"), capture_output=True, check=False).returncode


def has_short_names(lines, own):
    """Whether these are the stacks of PROGRAM but for its long name: native frames as in `own`, Python's up to the loop."""
    def outside(some):
        """The native frames before Python's; none before a module's table is there."""
        parted = (line.split(";<module> ")[0].partition(";")[2] for line in some if ";<module> " in line)
        return {re.sub(r"\[[^];]*\]", "[]", frames) for frames in parted if frames}
    if not lines:
        return False
    found = [line for line in lines if re.search(r";<module> \(<string>:\d+\);\? \(<string>:\d+\)", line)]
    assert found, lines
    assert outside(found) & outside(own), (found, own)
    return True


SETS = [USEFUL] + [[c for c in USEFUL if c != name] for name in USEFUL] + [[]]


@pytest.mark.parametrize("held", [SETS[0], *map(later, SETS[1:-1]), SETS[-1]], ids=["all", *(f"without-{name}" for name in USEFUL), "least"])
def test_set(held, place, programs):
    """Each missing one is named with what is lost, in the trace too; what is said to be lost is, and nothing else."""
    missing = [name for name in USEFUL if name not in held]
    if kernel_names_for_everybody():
        missing = [name for name in missing if name != "syslog"]
    capabilities, trace = NEEDED + held, place / "t.bin"
    said = record_programs(as_user(capabilities, PYCAP, "record", "-F", "299", "-o", trace), trace, programs)
    named = re.findall(r"^pycap: without CAP_(\w+): \w+", said, re.M)
    assert [name.lower() for name in named] == missing
    summary = subprocess.run([PYSYM, trace, "--format", "summary", "-v"], capture_output=True, text=True, check=True).stdout
    told = re.search(r"^  without +(.*)", summary, re.M)
    assert (told[1].lower().replace("cap_", "").split() if told else []) == missing
    info = subprocess.run(as_user(capabilities, PYCAP, "info"), capture_output=True, text=True, timeout=300, check=True)
    assert [name.lower() for name in re.findall(r"^ +without CAP_(\w+):", info.stdout, re.M)] == missing
    assert re.search(r"^sampling +yes$", info.stdout, re.M)

    folded = subprocess.run([PYSYM, trace, "--format", "folded", "--interpreter", "calls"], capture_output=True, text=True,
                            check=True).stdout
    stacks = {name: [line for line in folded.splitlines() if re.match(rf"[^;]*-{pid};", line)]
              for name, pid in programs.items()}
    whole = {name: any(f";{LONG} " in line for line in lines) for name, lines in stacks.items()}
    assert whole["own"]
    if "sys_ptrace" in held:
        assert whole["other"]
        assert whole["private"] == ("dac_read_search" in held)
        assert whole["deleted"] == ("dac_read_search" in held and "checkpoint_restore" in held)
    else:
        assert not whole["other"] and not whole["private"] and not stacks["deleted"]
        # Linux 6.15 and later show the mappings to who has CAP_PERFMON: then nothing but the long name is missing.
        shown = maps_are_shown(capabilities, programs["other"])
        assert has_short_names(stacks["other"], stacks["own"]) == shown
        assert has_short_names(stacks["private"], stacks["own"]) == (shown and "dac_read_search" in held)
        listed = set(map(int, re.findall(r"^ *(\d+)  \S", info.stdout, re.M)))
        assert programs["own"] in listed and (programs["other"] in listed) == shown
    kptr = int(pathlib.Path("/proc/sys/kernel/kptr_restrict").read_text())
    kernel = [line for line in stacks["own"] if "_[k]" in line]
    assert kernel
    assert any("stat" in frame for line in kernel for frame in re.findall(r"([^;]*)_\[k\]", line)) == \
        (kptr < 2 and "syslog" not in missing)


def test_overlay(privileged, place, needs_namespaces):
    """Where stat() has another device than the mapping a build ID proves the file; another file at the path is not taken."""
    for folder in ("low", "up", "top"):
        (place / folder).mkdir()
    shutil.copy(PYTHON, place / "low/python")
    script = """
    cd "$1"
    mount -t tmpfs none up
    mkdir up/new up/work
    mount -t overlay none -o lowerdir=low,upperdir=up/new,workdir=up/work top || exit 77
    program=$2
    shift 2
    setpriv --reuid=65533 --regid=65533 --clear-groups "$PWD/top/python" -c "$program" >ready &
    trap 'kill $!' EXIT
    until [ -s ready ]; do kill -0 $!; sleep 0.05; done
    "$@" cat /proc/$!/maps >maps || exit 78
    stat -c %d top/python >device
    "$@" "$PYCAP" record -F 299 -d 2 -o t.bin -p $!
    mount --bind "$PYCAP" top/python
    "$@" "$PYCAP" record -d 1 -o u.bin -p $! && exit 1
    exit 0
    """
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-eu", "-c", script, "sh", place, PROGRAM,
                           *as_user(NEEDED)], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYCAP": PYCAP})
    if done.returncode == 77:
        pytest.skip("no overlayfs can be mounted here")
    if done.returncode == 78:
        pytest.skip("the kernel hides the mappings of other users' processes")
    assert done.returncode == 0, done.stderr
    mapping = next(line.split() for line in (place / "maps").read_text().splitlines() if line.endswith("/top/python"))
    device = int((place / "device").read_text())
    assert f"{os.major(device):02x}:{os.minor(device):02x}" != mapping[3], "the test is about these being different"
    assert re.search(r"/top/python cannot be opened without CAP_SYS_PTRACE", done.stderr)
    assert not (place / "u.bin").exists()
    folded = subprocess.run([PYSYM, place / "t.bin", "--format", "folded"], capture_output=True, text=True, check=True).stdout
    assert re.search(r";<module> \(<string>:\d+\);\? \(<string>:\d+\)", folded), folded


def test_message_of_unreadable(place, programs):
    """Of a process whose binary or mappings are closed it is not known whether it is a CPython: that is what is said."""
    pid = programs["deleted"]
    done = subprocess.run(as_user(NEEDED, PYCAP, "record", "-d", "1", "-o", place / "t.bin", "-p", pid), capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode == 1
    what = f"{place}/deleted cannot be opened" if maps_are_shown(NEEDED, pid) else f"/proc/{pid}/maps may not be read"
    without = " CAP_".join(["", "SYS_PTRACE", "CHECKPOINT_RESTORE", "DAC_READ_SEARCH"])
    assert f"pycap: process {pid} (deleted): {what} without{without}" in done.stderr
    assert "no CPython was found" not in done.stderr
    assert not (place / "t.bin").exists()


def test_forbidden(privileged, place):
    """A process that is there though its mappings are shown to nobody, not even root: named, and counted."""
    def shown(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/maps").read_bytes() is not None
        except PermissionError:
            return False
    if shown(1):
        pytest.skip("the first process shows its mappings")
    trace = place / "t.bin"
    done = subprocess.run([PYCAP, "record", "-d", "1", "-o", trace, "-p", "1"], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 1
    assert re.search(r"^pycap: process 1 \(.*\): /proc/1/maps may not be read$", done.stderr, re.M), done.stderr
    done = subprocess.run([PYCAP, "record", "-d", "1", "-o", trace], capture_output=True, text=True, timeout=300, check=True)
    count = re.search(r"^  process_forbidden +(\d+)  ", done.stderr, re.M)
    assert count and int(count[1]) >= 1, done.stderr
    summary = subprocess.run([PYSYM, trace, "--format", "summary", "-v"], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^  process_forbidden +{count[1]}  ", summary, re.M), summary
    # It is none of those that were asked for here.
    done = subprocess.run([PYCAP, "record", "-d", "1", "-o", trace, "-a", "-p", str(os.getpid())], capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.returncode in (0, 1) and "process_forbidden" not in done.stderr  # 1: this process waits, and has no sample
    info = subprocess.run([PYCAP, "info"], capture_output=True, text=True, timeout=300, check=True).stdout
    assert re.search(r"^Processes whose /proc/PID/maps may not be read: [1-9]", info, re.M), info


@pytest.mark.parametrize("held, missing", [
    ([], "CAP_BPF and CAP_PERFMON are missing"), (["bpf"], "CAP_PERFMON is missing"), (["perfmon"], "CAP_BPF is missing"),
    (["perfmon", *USEFUL], "CAP_BPF is missing")], ids=["none", "bpf", "perfmon", "no-bpf"])
def test_needed(held, missing, place):
    """Without these two nothing is recorded; the message says what to do."""
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("to give and take capabilities needs root, and setpriv")
    done = subprocess.run(as_user(held, PYCAP, "record", "-d", "1", "-o", place / "t.bin"), capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 1
    assert missing in done.stderr
    assert "setcap cap_bpf," in done.stderr and "AmbientCapabilities=CAP_BPF " in done.stderr
    assert not (place / "t.bin").exists()


def status_of(path):
    text = pathlib.Path(path, "status").read_text()
    return {name: re.search(rf"^{name}:\s*(\S+)", text, re.M)[1] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb",
                                                                            "NoNewPrivs", "Seccomp", "Uid")}


def beside(pid, name):
    """A process of a recording: pycap-writer has its files open, pycap-tables makes room for unwind tables."""
    for path in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = path.read_text()
        except OSError:
            continue  # it has ended
        if text.startswith(f"Name:\t{name}\n") and re.search(rf"^PPid:\t{pid}$", text, re.M):
            return path.parent
    raise AssertionError(f"there is no {name}")


SANITIZED = "asan" in PYCAP


@pytest.fixture
def recording(privileged, place):
    """Starts pycap; returns it once it records."""
    started = []

    def run(*arguments, capabilities=None):
        trace = place / "t.bin"
        command = [PYCAP, "record", "-q", "-o", str(trace), *map(str, arguments)]
        process = subprocess.Popen(as_user(capabilities, *command) if capabilities is not None else command)
        started.append(process)
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            # The file's head is written before privileges are given up; the first block a second after recording began.
            if trace.exists() and trace.stat().st_size > accounts.TRACE_HEAD_BYTES:
                return process
            time.sleep(0.05)
        raise AssertionError("pycap does not record")
    yield run
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def bits(*names):
    return sum(1 << NUMBERS[name] for name in names)


@pytest.mark.smoke("least", load=True)
@pytest.mark.parametrize("capabilities", [None, NEEDED + USEFUL, NEEDED], ids=["root", "all", "least"])
def test_dropped(capabilities, recording):
    """Once it records, no thread has more than what is needed then, and the filter holds all of them."""
    if "tsan" in PYCAP:
        pytest.skip("ThreadSanitizer has a thread of its own, from before privileges are given up")
    process = recording(capabilities=capabilities)
    kept = bits("sys_ptrace", "checkpoint_restore", "dac_read_search") if capabilities != NEEDED else 0
    tasks = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
    assert len(tasks) >= 2
    for task in tasks:
        status = status_of(task)
        effective = int(status["CapEff"], 16)
        # Before Linux 6.0 maps are not to be used without CAP_BPF.
        if int(os.uname().release.split(".")[0]) < 6:
            effective &= ~bits("bpf")
        assert effective in (kept, 0)
        assert effective == kept or task.name != str(process.pid)
        assert int(status["CapPrm"], 16) == int(status["CapEff"], 16)
        assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
        assert status["NoNewPrivs"] == "1"
        assert SANITIZED or status["Seccomp"] == "2"
        # Root becomes a user that is nobody else, threads too; others stay who they are.
        assert int(status["Uid"]) == (1879048192 + process.pid if capabilities is None else int(OWN))
    # The file is open, and no other will be: the writer has nothing left but this file and its user.
    status = status_of(beside(process.pid, "pycap-writer"))
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1"
    assert SANITIZED or status["Seccomp"] == "2"
    assert status["Uid"] == ("0" if capabilities is None else OWN)
    # One may make maps, and nothing else.
    maker = beside(process.pid, "pycap-tables")
    status = status_of(maker)
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == bits("bpf") and status["NoNewPrivs"] == "1"
    assert SANITIZED or status["Seccomp"] == "2"
    assert int(status["Uid"]) == (1879048192 + int(maker.name) if capabilities is None else int(OWN))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_no_sandbox(recording):
    own = status_of("/proc/self")
    status = status_of(f"/proc/{recording('--no-sandbox').pid}")
    assert status == own


def test_writer_is_killed(recording, capfd):
    """pycap ends at once, and says why."""
    process = recording()
    os.kill(int(beside(process.pid, "pycap-writer").name), signal.SIGKILL)
    assert process.wait(60) == 1
    assert re.search(r"^pycap: \S*t\.bin: the process that writes it .* has ended unexpectedly", capfd.readouterr().err, re.M)


def test_command_keeps_its_privileges(privileged, pycap, place):
    """The command runs as if pycap were not there."""
    show = ["grep", "-E", "^(Cap|NoNewPrivs|Seccomp)", "/proc/self/status"]
    done = pycap("record", "-q", "-o", place / "t.bin", "--", *show)
    assert done.returncode == 0, done.stderr
    assert done.stdout == subprocess.run(show, capture_output=True, text=True, check=True).stdout


def test_command_of_another_user_is_ended(privileged, pycap, place):
    """pycap ends first: it tells the command so, though the command has become somebody else."""
    done = pycap("record", "-q", "-d", "1", "-o", place / "t.bin", "--", *as_user([], "sleep", "1000"))
    assert done.returncode == 128 + signal.SIGTERM, done.stderr


def test_file_capabilities(privileged, place):
    """As an installed pycap that was given its capabilities with setcap."""
    if not shutil.which("setcap"):
        pytest.skip("no setcap")
    if SANITIZED:
        pytest.skip("the sanitizers do not run with file capabilities")
    program, trace = place / "pycap", place / "t.bin"
    shutil.copy(PYCAP, program)
    os.chmod(program, 0o755)
    names = ",".join(f"cap_{name}" for name in NEEDED + USEFUL)
    if subprocess.run(["setcap", f"{names}+ep", program], capture_output=True, check=False).returncode:
        pytest.skip("the file system keeps no capabilities")
    done = subprocess.run(["setpriv", f"--reuid={OWN}", f"--regid={OWN}", "--clear-groups", program, "record", "-o", trace, "--",
                           PYTHON, "-c", "sum(range(20000000))"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "without CAP_" not in done.stderr
    folded = subprocess.run([PYSYM, trace, "--format", "folded"], capture_output=True, text=True, check=True).stdout
    assert "<module>" in folded


# ---- what docs/ offers ----

def unit_lines(name="pycap"):
    text = (ROOT / f"docs/systemd/{name}.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


def test_unit(tmp_path):
    """The systemd service: these capabilities and no others, options that exist, and systemd understands all of it."""
    unit = unit_lines()
    assert unit["Nice"] == "-20"
    for key in ("AmbientCapabilities", "CapabilityBoundingSet"):
        assert sorted(unit[key].split()) == sorted(f"CAP_{name.upper()}" for name in OF_UNIT)
    usage = subprocess.run([PYCAP, "record", "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"--[a-z-]+", unit["ExecStart"])
    assert options and all(option in usage for option in options)
    verify("pycap", tmp_path)


def verify(name, folder):
    """Does systemd understand the unit?"""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    copy = folder / f"{name}.service"
    copy.write_text((ROOT / f"docs/systemd/{name}.service").read_text().replace("/usr/bin/pycap", PYCAP).replace("/usr/bin/pysym", PYSYM))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert f"{name}.service" not in done.stderr


def test_flight_recorder(tmp_path):
    """The drop-in: systemd understands it beside the unit, the options exist, and the traces go where the unit says."""
    text = (ROOT / "docs/systemd/pycap-flight.conf").read_text()
    unit, start = unit_lines(), re.findall(r"^ExecStart=(.+)$", text, re.M)
    assert len(start) == 1 and re.search(r"-o (\S+)", start[0])[1] == re.search(r"-o (\S+)", unit["ExecStart"])[1]
    conditions = re.search(r"PYCAP_WHEN=(.*)\"", text)[1].split()
    done = subprocess.run([PYCAP, "record", "--on-demand", *conditions, "-o", tmp_path / "no%t" / "no", "-p", "4000000"],
                          capture_output=True, text=True, check=False)
    assert "--when" not in done.stderr and done.returncode == 1, done.stderr
    usage = subprocess.run([PYCAP, "record", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(option in usage for option in re.findall(r"--[a-z-]+", start[0]))
    (tmp_path / "pycap.service.d").mkdir()
    (tmp_path / "pycap.service.d/flight.conf").write_text(text.replace("/usr/bin/pycap", PYCAP))
    verify("pycap", tmp_path)


def test_unit_of_push(tmp_path):
    """It has no privilege, and is beside pycap's unit: it may read what that one writes, and neither needs the other."""
    unit, recorder = unit_lines("pycap-push"), unit_lines()
    assert unit["CapabilityBoundingSet"] == "" and "AmbientCapabilities" not in unit and unit["PrivateDevices"] == "yes"
    assert unit["SupplementaryGroups"] == recorder["Group"] == re.search(r"--group (\S+)", recorder["ExecStart"])[1]
    assert "pycap.service" in unit["After"] and "Requires" not in unit
    assert unit["ExecStart"].endswith(f" /var/lib/{recorder['StateDirectory']}") and recorder["StateDirectoryMode"] == "0750"
    assert "AF_INET" not in recorder["RestrictAddressFamilies"] and recorder["PrivateNetwork"] == "yes"
    assert "--token-file ${CREDENTIALS_DIRECTORY}/token" in unit["ExecStart"] and unit["LoadCredential"].startswith("token:/")
    made = (ROOT / "docs/systemd/pycap.sysusers.conf").read_text()
    assert re.search(rf"^g {recorder['Group']} ", made, re.M) and re.search(rf"^u {recorder['User']} -:{recorder['Group']} ", made, re.M)
    verify("pycap-push", tmp_path)


def test_service_command(recording, place):
    """The service's command as its user, with its capabilities: records, and rotates when it is told to."""
    unit = unit_lines()
    arguments = unit["ExecStart"].replace("%%", "%").replace("${STATE_DIRECTORY}", str(place)).split()[2:]
    arguments = [word.replace("${RUNTIME_DIRECTORY}", str(place)) for word in arguments]
    arguments[arguments.index("--group") + 1] = OWN
    arguments[arguments.index("-o") + 1] = str(place / "t-%t.bin")
    process = subprocess.Popen(["nice", "-n", unit["Nice"], *as_user(OF_UNIT, PYCAP, "record", *arguments)])
    try:
        for count in (1, 2, 3):
            end = time.monotonic() + 60
            while len(list(place.glob("t-*.bin"))) < count or not all(f.stat().st_size for f in place.glob("t-*.bin")):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.05)
            if count < 3:
                process.send_signal(signal.SIGHUP)
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert (place / "pycap.prom").stat().st_mode & 0o777 == 0o644
    for trace in place.glob("t-*.bin"):
        assert trace.stat().st_mode & 0o777 == 0o640
        done = subprocess.run([PYSYM, trace, "--format", "summary", "-v"], capture_output=True, text=True, check=True)
        assert "NOT ended" not in done.stdout and not re.search(r"^  without ", done.stdout, re.M)


def needed_by(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", text)


def test_container(place, programs, needs_namespaces):
    """As in a container: a root tree with nothing but pycap, mount and network namespaces of its own, few capabilities."""
    if SANITIZED:
        pytest.skip("the sanitizers want more of a root tree")
    root, data = place / "root", place / "data"
    for folder in ("proc", "sys", "data", "bin"):
        (root / folder).mkdir(parents=True)
    data.mkdir()
    setpriv = shutil.which("setpriv")
    for program in (PYCAP, setpriv):
        shutil.copy(program, root / "bin")
        for library in needed_by(program):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(library), target)
    names = "".join(f",+{name}" for name in NEEDED + USEFUL)
    script = """
    mount --rbind /proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mount --bind "$2" "$1/data"
    mount --rbind -o ro "$1" "$1"
    root=$1
    shift 2
    exec chroot "$root" "$@"
    """
    said = record_programs(["unshare", "--mount", "--net", "--uts", "--ipc", "--propagation", "private", "sh", "-ceu", script, "sh",
                            root, data, "/bin/setpriv", f"--bounding-set=-all{names}", f"--inh-caps=-all{names}", "/bin/pycap",
                            "record", "-F", "199", "-o", "/data/t.bin"], data / "t.bin", programs)
    assert "without CAP_" not in said
    folded = subprocess.run([PYSYM, data / "t.bin", "--format", "folded"], capture_output=True, text=True, check=True).stdout
    for pid in programs.values():
        assert re.search(rf"^[^;]*-{pid};.*;{LONG} ", folded, re.M)
