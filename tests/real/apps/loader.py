# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with two worker processes. usage: loader.py fork|spawn [PICTURES]"""
import sys

import torch
from torch.utils.data import DataLoader, Dataset

from clocks import phase


@phase
def load(number):
    return sum(n * n % 97 for n in range(30000)) + number


@phase
def decode(number):
    return torch.rand(300, 300).sort().values.sum() + number


@phase
def use(batch):
    return sum(n * n % 97 for n in range(60000)) + len(batch)


class Pictures(Dataset):
    def __len__(self):
        return int(sys.argv[2]) if len(sys.argv) > 2 else 500

    def __getitem__(self, number):
        return load(number) + decode(number)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for picked in DataLoader(Pictures(), batch_size=8, num_workers=2, multiprocessing_context=sys.argv[1]):
        use(picked)
