# SPDX-License-Identifier: Apache-2.0
"""python -m pycap_profiler ...: pycap of this environment, also where its folder of scripts is not on the PATH."""
import os
import sys

from . import program

path = program("pycap")
os.execvp(path, [path, *sys.argv[1:]])
