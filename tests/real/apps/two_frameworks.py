# SPDX-License-Identifier: Apache-2.0
"""torch and jax by turns of three seconds, as a program with two large libraries has them."""
import jax
import numpy
import torch

from clocks import by_turns, phase

weights = torch.rand(64, 64)
numbers = numpy.random.default_rng(1).random((200, 200))
compiled = jax.jit(lambda a: (jax.numpy.sin(a) @ a.T).sum())


@phase
def with_torch():
    x = weights
    for _ in range(20):
        x = torch.sin(x) + weights


@phase
def with_jax():
    compiled(numbers).block_until_ready()


@phase
def with_jax_steps():
    jax.numpy.sin(numbers[:30]).sum().block_until_ready()


by_turns([with_torch, with_jax, with_jax_steps], 6, turns=2)
