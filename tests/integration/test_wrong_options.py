# SPDX-License-Identifier: Apache-2.0
"""Wrong options end in exit code 2 and a message that names them, and nothing is written.

Under the sanitizers a leak fails them, too.
"""
import re
import subprocess
import sys

import pytest

RECORD = [
    ("-F 0", "rate"), ("-F x", "rate"), ("-F -5", "rate"), ("-F 1000001", "rate"),
    ("-p x", "process ids"), ("-p 0", "process ids"), ("-p 1,,2", "process ids"), ("-p 1 -p 2,x", "process ids"),
    ("-C x", "list of CPUs"), ("-C 3-1", "list of CPUs"), ("-C 0 -C x", "list of CPUs"), ("-C 65000", "no CPU 65000"),
    ("-d 0", "duration"), ("-d -1", "duration"), ("-d 1x", "duration"), ("-d nan", "duration"), ("-d inf", "duration"),
    ("-d 1e9d", "duration"), ("-d 1e-30", "duration"), ("--rotate 1e9d", "duration"), ("--rotate 0", "duration"),
    ("--rotate-size 1", "size of a file"), ("--max-size x", "size of a file"), ("--keep 0", "number of files"),
    ("--max-cpu 101", "share of a CPU"), ("--max-cpu nan", "share of a CPU"), ("--max-memory 1K", "amount of memory"),
    ("--nice 20", "nice value"),
    ("--realtime 0", "real-time priority"),
    ("--unwind x", "unwind"), ("--unwind-memory 1", "unwind tables"), ("--stack-size 65537", "stack size"),
    ("--stack-size 4096", "--unwind snapshot"), ("--unwind tables --stack-size 4096", "--unwind snapshot"),
    ("--stack-size 4096 --unwind fp", "--unwind snapshot"), ("--no-native --stack-size 4096", "--unwind snapshot"),
    ("--unwind snapshot --stack-size 0", "stack size"),
    ("--backend x", "backend"), ("-m 5000", "ring size"), ("--comm ,a", "command names"),
    ("--comm a --comm ,b", "command names"), ("--strip-code", "--strip-code needs --archive"), ("--idle", "--wall"), ("-C 0 -e off-cpu -- true", "on no CPU"), ("--wall --waker --backend proc -- true", "--waker need BPF"), ("-e off-cpu/period=10/ --backend proc -- true", "at most 10000 Hz"), ("--gil", "pysym"),
    ("--bogus", "unknown option --bogus"), ("--bogus=1", "unknown option --bogus"), ("-qz", "unknown option -z"),
    ("-F", "-F wants an argument"), ("--rate", "--rate wants an argument"), ("--quiet=1", "--quiet takes no argument"),
    ("-C 0 --comm a -p 1 --bogus", "unknown option --bogus"),
    ("--max-size 1M --keep 2", "--keep needs --rotate or --rotate-size"),
    ("--max-size 1M --keep 2 --rotate 1m", "--max-size and --rotate exclude each other"), ("-p 1 -- true", "-p or a command"), ("1234", "pycap record -p 1234"), ("-F 99 --", "a command is missing after --"),
    ("--format speedscope", "pysym trace.bin -f speedscope"), ("-f folded", "pysym trace.bin -f folded"),
    ("-q -v true", "exclude each other"), ("-p 1 true", "-p or a command"),
    ("--archive t.bin", "trace and the archive"), ("--backend proc --archive ./t.bin -- true", "trace and the archive"),
    ("-o - --archive - -- true", "trace and the archive"), ("-o t-%q.bin -- true", "%q"), ("--rotate 1 -- true", "%t"),
    ("--keep 3 -- true", "--rotate"), ("--keep 3 -o t-%t.bin -- true", "--rotate"),
    ("--backend proc", "command or named"), ("--backend proc -a -- true", "need BPF"),
]
OTHER = [
    ("", "say what"), ("bogus", "not known"), ("-p 1", "say what to do before -p"), ("top 12", "pycap top -p 12"),
    ("report", "then pysym trace.bin\n"), ("script", "-f perf-script"), ("python3 app.py", "pycap record python3"), ("info x", "no arguments"), ("archive", "name a trace"),
    ("archive --bogus", "unknown option --bogus"), ("info --bogus", "unknown option --bogus"), ("archive -", "with -o"), ("archive there.bin -o there.bin", "a trace"),
    ("archive there.bin -o ./there.bin", "a trace"), ("archive other there.bin -o link.bin", "a trace"),
]


@pytest.mark.parametrize("options, message", RECORD, ids=[options for options, _ in RECORD])
def test_record(pycap, tmp_path, options, message):
    result = pycap("record", "-o", "t.bin", *options.split(" "), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert message in result.stderr and "Sanitizer" not in result.stderr
    said, advice = result.stderr.splitlines() if "Try" in result.stderr else (result.stderr.rstrip("\n"), None)
    assert said.startswith("pycap: ") and advice in (None, "Try 'pycap record --help'."), result.stderr


@pytest.mark.parametrize("options, message", OTHER, ids=[options for options, _ in OTHER])
def test_other(pycap, tmp_path, options, message):
    (tmp_path / "there.bin").write_text("what was captured")
    (tmp_path / "link.bin").symlink_to("there.bin")
    result = pycap(*options.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert message in result.stderr and "Sanitizer" not in result.stderr
    assert (tmp_path / "there.bin").read_text() == "what was captured"


def test_push_files(pysym, tmp_path):
    """A map or a file of figures that will not do is an error before anything is read or sent."""
    (tmp_path / "names.txt").write_text("# names\npods:x app=shop\n")
    (tmp_path / "t.bin").write_text("what was captured")
    for options, code, message in (("--label-map nowhere.txt", 1, "nowhere.txt: could not be opened"),
                                   ("--label-map names.txt", 2, "names.txt:2: a line begins with pod:UID"),
                                   ("--status ./t.bin", 2, "./t.bin: is read")):
        result = pysym("push", "--parca", "http://127.0.0.1:9", "t.bin", *options.split(), cwd=tmp_path)
        assert (result.returncode, result.stdout) == (code, ""), result.stderr
        assert message in result.stderr and "Sanitizer" not in result.stderr
    assert (tmp_path / "t.bin").read_text() == "what was captured"


@pytest.mark.parametrize("options", ["--help", "--version", "record --help", "record --version", "archive --help",
                                     "info --help", "info"])
def test_full_output(pycap, options):
    """What cannot be printed is an error, and named."""
    with open("/dev/full", "w") as full:
        result = pycap(*options.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1, result.stderr
    assert "standard output" in result.stderr and "No space left" in result.stderr, result.stderr


def test_info_prints_no_control_characters(pycap):
    """A process chooses its name; it must not steer the terminal of whoever asks."""
    program = "open('/proc/self/comm', 'w').write('\\x1b[2Jname'); print(flush=True); input()"
    of_threads = r"^ +thread states by .+$"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        result, details = pycap("info"), pycap("info", "-v")
        child.communicate(b"\n")
    for each in (result, details):
        assert each.returncode == 0, each.stderr
        assert "\\x1b[2Jname" in each.stdout and "\x1b" not in each.stdout
    # How their threads are found is for those who ask for it.
    assert re.search(of_threads, details.stdout, re.M) and not re.search(of_threads, result.stdout, re.M), details.stdout
