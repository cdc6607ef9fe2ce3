# SPDX-License-Identifier: Apache-2.0
"""What a command writes to PYCAP_NOTE is in the trace.

What else it does with the file changes nothing.
"""
import glob
import json
import os
import pwd
import re
import secrets
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import PYCAP, PYTHON, why_no_bpf

pytestmark = pytest.mark.live

NOTE_BYTES = 4096


@pytest.fixture
def noted(tmp_path, pysym):
    """Records a shell command without BPF; returns the facts of the note, and what pycap said."""
    def run(script, *options, **keywords):
        trace = tmp_path / "t.bin"
        done = subprocess.run([PYCAP, "record", "--backend", "proc", "-o", trace, *options, "--", "sh", "-c", script],
                              capture_output=True, text=True, timeout=300, check=False,
                              **{"env": {**os.environ, "TMPDIR": str(tmp_path)}, **keywords})
        assert not list(tmp_path.glob("pycap-note-*")), "the file was not removed"
        return facts(pysym, trace), done.stderr
    return run


def facts(pysym, trace):
    done = pysym(trace, "-f", "summary", "--json")
    assert done.returncode in (0, 3), done.stderr
    settings = json.loads(done.stdout)["files"][0]["settings"]
    return {key: value for key, value in settings.items() if "note" in key}


@pytest.mark.smoke
def test_note(noted, tmp_path):
    """The command, its children, and those that it leaves to themselves write; the file is theirs alone."""
    found, said = noted("""stat -c '%a %u %s %F' "$PYCAP_NOTE" >stat
        printf 'work=20000' >>"$PYCAP_NOTE"; echo >>"$PYCAP_NOTE"
        for i in 1 2 3; do (echo work=$i >>"$PYCAP_NOTE") & done; wait
        nohup setsid sh -c 'echo work.late=4 >>"$PYCAP_NOTE"; touch done' >/dev/null 2>&1 &
        while ! [ -e done ]; do sleep .01; done
        echo branch=old >>"$PYCAP_NOTE"; echo branch=main >>"$PYCAP_NOTE"
        kill -9 $$""", cwd=tmp_path)
    assert (tmp_path / "stat").read_text() == f"600 {os.getuid()} 0 regular empty file\n"
    assert found == {"note.work": "20006", "note.work.late": "4", "note.branch": "main"} and "PYCAP_NOTE" not in said


def test_none(noted):
    """Nothing is written, or there is no such file: the trace has nothing of it."""
    assert noted("true")[0] == {}
    found, said = noted(f"rm $PYCAP_NOTE; echo work=5 >>$PYCAP_NOTE; {PYTHON} -c pass")
    assert found == {} and "PYCAP_NOTE" not in said


def test_lines_that_cannot_be_used(noted, tmp_path):
    """Too much, and bytes of any kind: what is taken is right, and the rest is said."""
    found, said = noted(f"""echo branch=main >$PYCAP_NOTE; yes work=1 | head -c 1000000 >>$PYCAP_NOTE""")
    assert found == {"note.branch": "main", "command.note_cut_bytes": str(1_000_000 + 12 - NOTE_BYTES)}
    assert "PYCAP_NOTE was written too much: of its 1,000,012 bytes the first 4096 were read" in said, said
    garbage = secrets.token_bytes(NOTE_BYTES - 100)
    (tmp_path / "garbage").write_bytes(garbage + b"\n\x1b[2J=\x1b]0;\x07\nwork=7\nbad=\xff\nwork=many\nlast=1\n")
    found, said = noted('cat garbage >"$PYCAP_NOTE"', cwd=tmp_path)
    assert found.pop("note.last") == "1" and "note.work" not in found and "note.bad" not in found
    assert int(found.pop("command.note_refused_lines")) >= 4
    assert re.search(r"^PYCAP_NOTE: \d+ lines were left out\. Lines are KEY=VALUE of printable ASCII", said, re.M), said
    assert all(re.fullmatch(r"note\.[A-Za-z_][\w.-]*", key) and value.isprintable() for key, value in found.items()), found
    assert "\x1b" not in said


@pytest.mark.parametrize("replace", ['ln -s "$PWD/secret" "$PYCAP_NOTE"', 'ln "$PWD/secret" "$PYCAP_NOTE"', 'mkfifo "$PYCAP_NOTE"',
                                     'cp secret "$PYCAP_NOTE.new"; mv "$PYCAP_NOTE.new" "$PYCAP_NOTE"'])
def test_another_file_at_its_path(noted, tmp_path, replace):
    (tmp_path / "secret").write_text("secret=1\n")
    found, _ = noted(f'echo work=5 >>"$PYCAP_NOTE"; rm "$PYCAP_NOTE"; {replace}', cwd=tmp_path)
    assert found == {"note.work": "5"}
    assert (tmp_path / "secret").read_text() == "secret=1\n"


def test_no_file():
    """Where none can be made, in a file system that is read only, it is said, and the rest goes on."""
    if os.getuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this needs root and a mount namespace")
    script = "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp && exec \"$0\" record --backend proc -o /dev/null -- " \
             "sh -c 'echo note=$PYCAP_NOTE; exit 7'"
    environment = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, PYCAP], capture_output=True, text=True, timeout=300, check=False,
                          env=environment)
    assert done.returncode == 7 and done.stdout == "note=\n", done
    assert "/tmp: no file for notes of the command (PYCAP_NOTE) can be made there; it is recorded without" in done.stderr


def test_another_user(noted, tmp_path):
    """The command gives the file to the user that it becomes; who then puts something of root's there gets none of it."""
    if os.getuid():
        pytest.skip("only root may become another user")
    nobody = pwd.getpwnam("nobody").pw_uid
    secret = tmp_path / "secret"
    secret.write_text("secret=1\n")
    become = f"setpriv --reuid {nobody} --clear-groups sh -c"
    # In /tmp, as its folder must be one that this user reaches.
    environment = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
    found, said = noted(f"""echo work=1 >>"$PYCAP_NOTE"; chown {nobody} "$PYCAP_NOTE"
        {become} 'echo work=4 >"$PYCAP_NOTE"; rm "$PYCAP_NOTE"; ln -s {secret} "$PYCAP_NOTE"'; echo $PYCAP_NOTE >path""",
        env=environment, cwd=tmp_path)
    assert found == {"note.work": "4"} and secret.read_text() == "secret=1\n", said
    assert not os.path.lexists((tmp_path / "path").read_text().strip())
    # Without that it may not.
    found, _ = noted(f"""{become} 'echo work=4 >>"$PYCAP_NOTE"'; echo $PYCAP_NOTE >path""", env=environment, cwd=tmp_path)
    assert found == {}
    assert not os.path.lexists((tmp_path / "path").read_text().strip())


def test_without_privilege(pysym):
    """Another user than root, with what he has."""
    if os.getuid():
        pytest.skip("only root may become another user")
    nobody = pwd.getpwnam("nobody")
    become = ["setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
    if subprocess.run([*become, "test", "-x", PYCAP], check=False).returncode:
        pytest.skip("another user may not execute pycap here")
    with tempfile.TemporaryDirectory() as home:  # pytest's folders are root's alone
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        done = subprocess.run([*become, PYCAP, "record", "-o", f"{home}/t.bin", "--", "sh", "-c",
                               f'echo work=5 >>"$PYCAP_NOTE"; {PYTHON} -c pass'],
                              capture_output=True, text=True, timeout=300, check=False, cwd=home, env={**os.environ, "TMPDIR": home})
        assert facts(pysym, f"{home}/t.bin") == {"note.work": "5"}, done.stderr
        assert not glob.glob(f"{home}/pycap-note-*")


def start(tmp_path, script, *options):
    """Starts a recording, and waits until the command has written its note."""
    process = subprocess.Popen([PYCAP, "record", "-q", *options, "--", "sh", "-c", f"{script}; touch ready; sleep 600"],
                               cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "ready").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(.01)
    return process


def test_outlived(tmp_path, pysym):
    """A recording that ends before the command has what was written by then."""
    process = start(tmp_path, 'echo work=5 >>"$PYCAP_NOTE"', "--backend", "proc", "-o", "t.bin")
    process.send_signal(signal.SIGINT)
    process.wait(300)
    found = json.loads(pysym(tmp_path / "t.bin", "-f", "summary", "--json").stdout)["files"][0]["settings"]
    assert found["note.work"] == "5" and "command.wall_ns" not in found
    assert not list(tmp_path.glob("pycap-note-*"))


def test_killed(tmp_path):
    """Killed itself, pycap leaves no file behind."""
    process = start(tmp_path, 'echo work=5 >>"$PYCAP_NOTE"', "--backend", "proc", "-o", "t.bin")
    assert len(list(tmp_path.glob("pycap-note-*"))) == 1
    process.kill()
    deadline = time.monotonic() + 120
    while list(tmp_path.glob("pycap-note-*")):
        assert time.monotonic() < deadline
        time.sleep(.01)
    os.killpg(process.pid, signal.SIGKILL)  # the command
    process.wait(300)


def test_last_file(tmp_path, pysym):
    """Where there are several files, the last has the note, as it has what came of the command."""
    if why_no_bpf():
        pytest.skip(why_no_bpf())
    # As a signal begins the next file, two come, however slow the machine is.
    process = start(tmp_path, 'echo work=5 >>"$PYCAP_NOTE"', "--rotate", "1h", "-o", "t-%t.bin")
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 120
    while len(traces := sorted(tmp_path.glob("t-*.bin"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(.01)
    process.send_signal(signal.SIGINT)
    process.wait(300)
    assert [facts(pysym, trace) for trace in traces] == [{}, {"note.work": "5"}]
