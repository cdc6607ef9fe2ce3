# SPDX-License-Identifier: Apache-2.0
"""pysym push sends a trace once that lies there twice, and limits the series of a window."""
import collections
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PYSYM
from profile_store import ProfileStore

TESTDATA = pathlib.Path(__file__).parents[2] / "testdata"
DEMO = TESTDATA / "demo/demo.trace"
THREADS = TESTDATA / "waiting/flaskr.trace"


@pytest.fixture
def store():
    with ProfileStore("parca") as store:
        yield store


def push(store, *arguments):
    done = subprocess.run([str(a) for a in (PYSYM, "push", "--parca", store.url, *arguments)], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_trace_that_lies_there_twice_is_sent_once(store, tmp_path):
    shutil.copy(DEMO, tmp_path / "a.bin")
    os.link(tmp_path / "a.bin", tmp_path / "b.bin")
    shutil.copy(DEMO, tmp_path / "c.bin")
    said = push(store, "--label", "tid={tid}", "--window", "1s", tmp_path)
    times = collections.Counter((p.series, p.profile.time_ns, p.data) for p in store.profiles)
    assert len(times) > 5 and set(times.values()) == {1}
    assert "of 1 trace " in said and "again" not in said


def test_more_series_than_a_window_may_have(store):
    said = push(store, "--label", "tid={tid}", "--max-series", "1", THREADS)
    assert '--max-series 1 of a window: their samples are in service_name="other"' in said
    assert any(p.labels["service_name"] == "other" for p in store.profiles)
    assert "--max-series" not in push(store, "--label", "env=test", DEMO)
