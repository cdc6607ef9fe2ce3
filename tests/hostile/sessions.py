# SPDX-License-Identifier: Apache-2.0
"""Sessions that root opens while the recorder runs, as sshd, cron, su or a container runtime does; what is in them attacks.

setuid: root forks, becomes another user, and executes a shell, which starts the programs. su: the same by su(1).
worker: the program is root's, and has forks that change their user without exec, as servers do. container: namespaces of its own for
users, processes and mounts, with 65,536 ids. host-ids: those for processes and mounts alone, with the ids of the host. subids:
a user's own user namespace, with the ids that /etc/subuid gives. login: the session of a user who has logged in, and uses ids of
the host. ids: children of root's with ever other ids, 65,536 of them.

modules: programs that map ever new files as code. layouts: programs that say they are CPythons, each of another version. Where
there are many ids each program has another one.

usage: sessions.py SECONDS HOW WHAT PROGRAMS     two of these words, and the folder of compiled programs
"""
import contextlib
import ctypes
import os
import pathlib
import pwd
import shutil
import struct
import subprocess
import sys
import time

import attack

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
FIRST_ID, IDS = 200000, 65536
USER = 4242
SU_USER = "nobody"
MAPPERS, FILES_OF_MAPPER = 4, 5000
FILES_OF_ID = 60  # where each program has another id
FAKES = 62
FAKE_VERSION = 0x030b02f0  # fake_python.c
FILES = pathlib.Path("files").absolute()
LOGIN = pathlib.Path("/proc/self/loginuid")
libc = ctypes.CDLL(None, use_errno=True)


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def fork(work):
    """Runs work() in a child."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def mapper(*ids):
    """The command of a program that maps files."""
    count = FILES_OF_ID if ids and ids[1] > 1 else FILES_OF_MAPPER
    return [str(FILES.parent / "new_files"), str(end - time.time()), str(count), *map(str, ids)]


def shell():
    """The command of a shell that starts such programs."""
    command = " ".join(f"'{word}'" for word in mapper())
    return ["sh", "-c", f"sleep 0.2; for i in {' '.join(map(str, range(MAPPERS)))}; do {command} & done; wait"]


def fakes():
    """Copies of the fake interpreter whose versions differ."""
    data, version = (PROGRAMS / "fake_python").read_bytes(), struct.pack("<I", FAKE_VERSION)
    at, made = data.index(version), []
    for i in range(FAKES):
        path = FILES / f"fake{i}"
        path.write_bytes(data[:at] + struct.pack("<I", 0x030b00f0 | i + 20 << 8) + data[at + 4:])
        path.chmod(0o755)
        made.append(str(path))
    return made


def start_fake(path):
    """It computes for a moment, so that it is met, and then sleeps."""
    with subprocess.Popen([path, str(int(end - time.time()) + 1), "none"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as fake:
        fake.stdout.readline()
        fake.stdin.write(b"go\n")
        fake.stdin.flush()
        time.sleep(0.3)
        fake.send_signal(19)
        time.sleep(max(0, end - time.time()))
        fake.kill()


def many_ids(first):
    """Programs of as many users as there are ids, until the time is over."""
    if sys.argv[3] == "layouts":
        for i, path in enumerate(fakes()):
            fork(lambda path=path, i=i: (become(first + i), start_fake(path)))
    else:
        for i in range(MAPPERS):
            fork(lambda i=i: os.execv(mapper()[0], mapper(first + i * IDS // MAPPERS, IDS // MAPPERS)))
    with contextlib.suppress(ChildProcessError):  # the first process of a namespace takes all others with it
        while True:
            os.wait()


def in_namespaces(flags, work):
    """Has a child do work() as the first process of new namespaces; those of users get 65,536 ids."""
    told, tells = os.pipe()
    mapped, maps = os.pipe()
    pid = os.fork()
    if pid == 0:
        if flags & CLONE_NEWUSER and sys.argv[2] == "subids":
            become(USER)
        if libc.unshare(flags):
            os.write(tells, b"no")
            os._exit(1)
        os.write(tells, b"ok")
        os.read(mapped, 1)
        if flags & CLONE_NEWUSER:
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
        os.waitpid(fork(work), 0)
        os._exit(0)
    if os.read(told, 2) != b"ok":
        return False
    if flags & CLONE_NEWUSER:
        for name in ("uid_map", "gid_map"):
            pathlib.Path(f"/proc/{pid}/{name}").write_text(f"0 {FIRST_ID} {IDS}", encoding="ascii")
    os.write(maps, b"x")
    return True


def open_sessions(how):
    if how == "setuid" and sys.argv[3] == "layouts":
        for path in fakes():
            fork(lambda path=path: (become(FIRST_ID), start_fake(path)))
    elif how == "setuid":
        fork(lambda: (become(FIRST_ID), os.execv("/bin/sh", shell())))
    elif how == "su":
        subprocess.Popen(["su", SU_USER, "-s", "/bin/sh", *shell()[1:]], stdin=subprocess.DEVNULL)
    elif how == "worker":
        for _ in range(MAPPERS):
            fork(lambda: os.execv(mapper()[0], mapper(FIRST_ID, 1)))
    elif how in ("container", "subids"):
        in_namespaces(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, lambda: many_ids(0))
    elif how == "login":
        fork(lambda: (LOGIN.write_text(str(USER), encoding="ascii"), many_ids(1000)))
    elif how == "host-ids":
        in_namespaces(CLONE_NEWPID | CLONE_NEWNS, lambda: many_ids(1000))
    else:
        many_ids(FIRST_ID)


PROGRAMS = pathlib.Path(sys.argv[4])
shutil.copy(PROGRAMS / "new_files", FILES.parent)
FILES.mkdir()
FILES.chmod(0o1777)
FILES.parent.chmod(0o755)
if sys.argv[2] == "su" and not any(user.pw_name == SU_USER for user in pwd.getpwall()):
    attack.skip(f"there is no user {SU_USER}")
if sys.argv[2] == "login" and not LOGIN.exists():
    attack.skip("the kernel does not know who has logged in")
if sys.argv[2] in ("container", "subids", "host-ids"):
    probe = CLONE_NEWPID | CLONE_NEWNS | (0 if sys.argv[2] == "host-ids" else CLONE_NEWUSER)
    if not in_namespaces(probe, lambda: None):
        attack.skip("no namespaces")
attack.wait_for_go()
end = attack.stop - 3  # by themselves: nobody can end a session of its own with its group
open_sessions(sys.argv[2])
time.sleep(max(0, end - time.time()))
