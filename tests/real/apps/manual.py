# SPDX-License-Identifier: Apache-2.0
"""A manual of many pages, built by Sphinx in two processes."""
import pathlib
import sys
import tempfile

from sphinx.cmd.build import main

PAGE = "Page {0}\n========\n\n" + "\n\n".join(f"Text of :doc:`page{n}` with *words* and ``code``, {n}.\n\n.. code-block:: python\n\n"
                                              f"   def f{n}(x):\n       return [n * {n} for n in x]" for n in range(20))
with tempfile.TemporaryDirectory() as folder:
    for number in range(100):
        pathlib.Path(folder, f"page{number}.rst").write_text(PAGE.format(number))
    pathlib.Path(folder, "index.rst").write_text("Manual\n======\n\n.. toctree::\n   :glob:\n\n   page*\n")
    sys.exit(main(["-C", "-Q", "-j", "2", folder, folder + "/out"]))
