# SPDX-License-Identifier: Apache-2.0
"""Cells in a kernel of Jupyter, by its client."""
from jupyter_client.manager import start_new_kernel

CELLS = ["import work", "for _ in range(20): work.count(30000)", "for _ in range(700): work.answer()",
         "def again(n):\n    for _ in range(n): work.parse()", "again(5000)"]
manager, client = start_new_kernel()
for cell in CELLS * 3:
    assert client.execute_interactive(cell, timeout=120)["content"]["status"] == "ok"
client.stop_channels()
manager.shutdown_kernel()
