# SPDX-License-Identifier: Apache-2.0
"""torch: training of a small network, a backward step in Python, products of matrices, and many small steps."""
import torch
from torch import nn

from clocks import by_turns, phase

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(),
                    nn.Linear(16 * 32 * 32, 10))
optimizer = torch.optim.Adam(net.parameters())
pictures, labels = torch.rand(16, 3, 32, 32), torch.randint(0, 10, (16,))
weights = torch.rand(100, 100, requires_grad=True)
matrix = torch.rand(400, 400)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        sum(n * n % 97 for n in range(3000))
        return gradient * 2


@phase
def train():
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(pictures), labels).backward()
    optimizer.step()


@phase
def backward_in_python():
    Doubled.apply(Doubled.apply(weights)).sum().backward()


@phase
def products():
    return matrix @ matrix


@phase
def elements():
    return torch.sin(matrix).exp().sum()


@phase
def small_steps():
    one = torch.ones(3)
    for _ in range(100):
        one = one + 1


@phase
def recurrent():
    x = weights[:64, :64]
    for _ in range(20):
        x = torch.tanh(x @ weights[:64, :64])
    x.sum().backward()
    weights.grad = None


by_turns([train, backward_in_python, products, elements, small_steps, recurrent], 3, turns=2)
