"""Tasks of asyncio that burn CPU in turns. Prints the seconds that each one took. usage: tasks.py SECONDS"""
import asyncio
import json
import sys
import time

spent = {}


def burn():
    for _ in range(20000):
        pass


async def work(seconds):
    name, used = asyncio.current_task().get_name(), 0
    while used < seconds:
        start = time.thread_time()
        burn()
        used += time.thread_time() - start
        await asyncio.sleep(0)
    spent[name] = used


async def lazy(seconds):
    """Never asks for its name, so that it has but a number."""
    used = 0
    while used < seconds:
        start = time.thread_time()
        burn()
        used += time.thread_time() - start
        await asyncio.sleep(0)
    spent["lazy"] = used


async def renamed(seconds):
    asyncio.current_task().set_name("renamed")
    await work(seconds)


async def short():
    """Tasks that come and go at the same addresses, each with a name of its own."""
    spent["short"] = 0
    for n in range(500):
        await asyncio.create_task(once(), name="short-%d" % n)


async def once():
    start = time.thread_time()
    burn()
    spent["short"] += time.thread_time() - start


async def main(seconds):
    loop = asyncio.get_running_loop()
    await asyncio.gather(
        loop.create_task(work(seconds), name="fetch"), loop.create_task(work(2 * seconds), name="w\u00f6rk"),
        loop.create_task(work(seconds), name="\u4efb\u52a1"), loop.create_task(work(seconds), name="n" * 300),
        loop.create_task(lazy(seconds)), loop.create_task(renamed(seconds), name="before"),
        loop.create_task(short(), name="parent"))


def outside(seconds):
    """When no task runs."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        burn()


asyncio.run(main(float(sys.argv[1])))
outside(float(sys.argv[1]))
print(json.dumps(spent))
