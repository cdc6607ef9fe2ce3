# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio as no program has them, for a recorder that reads them in memory. Needs Python 3.14 in a root tree.

circle: a list of tasks that never comes back to its head. long: a list of 10 million tasks that overlap. lost: a list that
leads to memory that is not there. deep: stacks of 20,000 coroutines. itself: a coroutine that awaits itself. lengths: names
and sets that say they are huge. These but "deep" are made by writing into the program's own memory.
awaiters: each of 1,000 tasks is awaited by all of them. line: each of 10,000 tasks is awaited by the next. names: tasks with
long names that change all the time. functions: tasks whose functions are always new. changing: tasks that start,
switch and end as fast as they can.

usage: tasks.py SECONDS circle|long|lost|deep|itself|lengths|awaiters|line|names|functions|changing IN-ROOT.SH ROOT
"""
import asyncio
import ctypes
import mmap
import os
import pathlib
import struct
import sys
import time

import attack

VERSION = (3, 14)
NOBODY = 4242
COUNT = 1000
FIELDS = """cookie version free_threaded rs_size rs_finalizing rs_interpreters is_size is_id is_next is_threads is_main is_gc
is_imports is_sysdict is_builtins is_ceval is_gil is_gil_enabled is_gil_locked is_gil_holder is_codegen is_tlbcgen
ts_size ts_prev ts_next ts_interp ts_frame ts_id ts_native ts_datastack ts_status f_size f_previous f_executable f_instr
f_localsplus f_owner f_stackpointer f_tlbc co_size co_filename co_name co_qualname co_linetable co_firstlineno co_argcount
co_lpn co_lpk co_code co_tlbc ob_size ob_type ty_size ty_name ty_repr ty_flags tu_size tu_item tu_n li_size li_item li_n se_size
se_used se_table se_mask di_size di_keys di_values fl_size fl_val lo_size lo_tag lo_digit by_size by_n by_val un_size un_state
un_length un_ascii gc_size gc_collecting ge_size ge_name ge_iframe ge_state""".split()
TASK_FIELDS = "size name awaited_by is_task is_set coro node".split()


def section(path, wanted):
    """A section's bytes, of the ELF file at `path`."""
    data = pathlib.Path(path).read_bytes()
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    for row in rows:
        at = rows[names][4] + row[0]
        if data[at:data.index(b"\0", at)].decode() == wanted:
            return data[row[4]:row[4] + row[5]]
    return None


def offsets():
    """Where things lie, by the interpreter's own tables."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        paths = {line.split()[-1] for line in lines if "/" in line}
    table = section(os.path.realpath(sys.executable), ".PyRuntime")
    aio = next(filter(None, (section(path, ".AsyncioDebug") for path in sorted(paths) if "asyncio" in path or "python" in path)))
    assert table.startswith(b"xdebugpy")
    found = dict(zip(FIELDS, struct.unpack_from(f"<{len(FIELDS)}Q", table)))
    found.update(("task_" + name, value) for name, value in
                 zip(TASK_FIELDS, struct.unpack_from(f"<{len(TASK_FIELDS)}Q", aio)))
    return found


def word(address):
    return ctypes.c_uint64.from_address(address)


def node(task):
    """Its entry in the list of tasks: next, and at +8 previous."""
    return id(task) + at["task_node"]


def slot(coroutine):
    """Where what it awaits stands: on top of its stack."""
    return word(id(coroutine) + at["ge_iframe"] + at["f_stackpointer"]).value - 8


async def nested(depth=0):
    if depth:
        await nested(depth - 1)
    await asyncio.sleep(1000)


async def start(count, depth=0):
    tasks = [asyncio.create_task(nested(depth), name=f"task {i}") for i in range(count)]
    await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    return tasks


def wait():
    """For the end, without a word to the loop: its lists would not bear it."""
    attack.wait_for_go()
    time.sleep(max(0, attack.stop - time.time()))
    os._exit(0)


async def circle():
    tasks = await start(COUNT)
    word(node(tasks[-1])).value = node(tasks[1])
    wait()


async def long():
    """Every other word is the next entry, the words between are a coroutine with a deep stack."""
    tasks = await start(COUNT, 200)
    size = 160 << 20
    memory = mmap.mmap(-1, size)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    coroutine = id(tasks[0].get_coro())
    odd = (at["task_coro"] - at["task_node"]) // 8 % 2
    assert odd, "next and coroutine would be the same word"
    for begin in range(0, size, 1 << 20):
        words = range(base + begin + 16, base + begin + 16 + (1 << 20), 16)
        memory[begin:begin + (1 << 20)] = b"".join(struct.pack("<QQ", w, coroutine) for w in words)
    word(node(tasks[0])).value = base + 4096
    wait()


async def lost():
    tasks = await start(COUNT)
    for i, address in enumerate((8, 2 ** 47 - 8, 2 ** 64 - 8, 0xffffffff81000000, id(tasks) + 1)):
        word(id(tasks[i]) + at["task_coro"]).value = address
        word(id(tasks[10 + i]) + at["task_name"]).value = address
        word(slot(tasks[20 + i].get_coro())).value = address
    word(node(tasks[COUNT // 2])).value = 0x700000000000
    wait()


async def deep():
    sys.setrecursionlimit(100000)
    await start(50, 20000)
    wait()


async def itself():
    tasks = await start(COUNT)
    for task in tasks[::2]:
        coroutine = task.get_coro()
        word(slot(coroutine)).value = id(coroutine)
    for task, other in zip(tasks[1::4], tasks[3::4]):  # two that await each other
        word(slot(task.get_coro())).value = id(other.get_coro())
        word(slot(other.get_coro())).value = id(task.get_coro())
    wait()


async def awaiters():
    tasks = await start(COUNT)
    for task in tasks:
        for other in tasks:
            asyncio.future_add_to_awaited_by(task, other)
    wait()


async def line():
    """Each awaits the next, so each has a stack of its own, which is that of all before it."""
    tasks = await start(10 * COUNT)
    for task, other in zip(tasks, tasks[1:]):
        asyncio.future_add_to_awaited_by(task, other)
    wait()


async def lengths():
    tasks = await start(COUNT)
    for i, task in enumerate(tasks):
        name = "long name %d \u4efb" % i if i % 2 else "long name %d" % i
        task.set_name(name)
        word(id(name) + at["un_length"]).value = (1 << 62, 1 << 31, 2 ** 64 - 1, 1 << 24)[i % 4]
        asyncio.future_add_to_awaited_by(task, tasks[i - 1])
        asyncio.future_add_to_awaited_by(task, tasks[i - 2])
        awaited_by = word(id(task) + at["task_awaited_by"]).value
        word(awaited_by + at["se_mask"]).value = word(awaited_by + at["se_used"]).value = (1 << 40, 2 ** 64 - 1)[i % 2]
    wait()


async def names():
    tasks, number = await start(COUNT), 0
    attack.wait_for_go()
    while time.time() < attack.stop:
        for task in tasks:
            number += 1
            task.set_name(f"\x1b[31m{number}" + "\u202e" * 5000)
        await asyncio.sleep(0)
    os._exit(0)


async def functions():
    number = 0
    attack.wait_for_go()
    while time.time() < attack.stop:
        made = {"sleep": asyncio.sleep}
        text = "".join(f"async def f{number}_{i}(): await sleep(0.2)\n" for i in range(200))
        exec(compile(text, f"x{number}" * 20, "exec"), made)
        number += 1
        await asyncio.gather(*(made[name]() for name in list(made) if name.startswith("f")))
    os._exit(0)


async def changing():
    async def one():
        for _ in range(10):
            await asyncio.sleep(0)
    attack.wait_for_go()
    while time.time() < attack.stop:
        await asyncio.gather(*(nested_once(i % 10, one) for i in range(COUNT)))
    os._exit(0)


async def nested_once(depth, work):
    if depth:
        await nested_once(depth - 1, work)
    else:
        await asyncio.create_task(work())


def enter_root():
    """Goes on as the root tree's interpreter, and as a user that has nothing."""
    if sys.version_info[:2] != VERSION:
        in_root, root = sys.argv[3:5]
        if not os.path.exists(root + "/.complete"):
            attack.skip(f"no root tree with Python 3.14: see tests/interpreters.sh sid ({root})")
        os.execv(in_root, [in_root, root, "/usr/bin/python3.14", *sys.argv])
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


enter_root()
at = offsets()
asyncio.run(globals()[sys.argv[2]]())
