# SPDX-License-Identifier: Apache-2.0
"""A function that torch.compile has made, and the processes that inductor compiles in, which are given work of ours: without a
GPU they have none. For a minute. usage: inductor.py"""
import time

import torch
from torch._inductor.async_compile import AsyncCompile

import workers

if __name__ == "__main__":
    pool = AsyncCompile.process_pool()
    given = [pool.submit(workers.toil) for _ in range(2)]
    compiled = torch.compile(lambda x: (torch.sin(x) + x).relu().sum(0))
    end = time.monotonic() + workers.SECONDS
    while time.monotonic() < end:
        compiled(torch.rand(500, 50))
