# SPDX-License-Identifier: Apache-2.0
"""What pycap says at the end of a recording, beside what pysym's summary says of its files."""
import collections
import json
import pathlib
import re
import subprocess

NUMBER = r"((?:\d{1,3}(?:,\d{3})+)|\d+)"
RECORDED = re.compile(rf"^Recorded {NUMBER} samples?(?: of {NUMBER} process(?:es)?)?(?: in .*?)? into (.*) \([^()]* (?:B|[KMG]iB)\)(; .*)?\.$", re.M)

# Counts of what is in the file; losses by name, but for what happens to every program at its start; None: not said.
Counts = collections.namedtuple("Counts", "samples processes lost losses")


def number(text):
    return int(text.replace(",", ""))


def said(text):
    """The counts and the file that the last lines of `pycap record` name; None: there are none, or several files."""
    recorded = RECORDED.search(text)
    if not recorded:
        return None
    lost = re.search(rf"(?:{NUMBER}|\b[Nn]o) samples? w(?:as|ere) lost", text)
    unwritten = re.search(rf"; {NUMBER} could not be written\.$", text, re.M)
    losses = {name: number(count) for name, count in re.findall(rf"^  ([a-z_]+) +{NUMBER}  ", text, re.M)}
    if "whether it is in a file or not:" in text:
        losses = None
    counts = Counts(number(recorded[1]), number(recorded[2]) if recorded[2] else None,
                    number(unwritten[1]) if unwritten else number(lost[1] or "0") if lost else None, losses)
    return counts, recorded[3]


def summary_of(pysym, path):
    done = subprocess.run([pysym, str(path), "--format", "summary", "--json", "--no-host"], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def found(summary, counts):
    """The same counts in a summary, as far as they were said."""
    losses = collections.Counter()
    for row in summary["losses"]:
        minor = row["class"] == "expected" and 100 * row["count"] < summary["all_samples"]
        if counts.losses is not None and (row["loss"] in counts.losses or not minor):
            losses[row["loss"]] += row["count"]
    return Counts(summary["all_samples"], counts.processes and summary["process_count"],
                  None if counts.lost is None else summary["lost_samples"]["part"],
                  None if counts.losses is None else dict(losses))


def compare(pysym, text, folder=None):
    """Fails where the last lines of a recording, `text`, and the summary of its file have different numbers."""
    told = said(text)
    path = pathlib.Path(folder or ".") / told[1] if told else None
    if not path or not path.is_file():
        return
    counts, summary = told[0], summary_of(pysym, path)
    assert found(summary, counts) == counts, f"{found(summary, counts)}, but pycap said {counts}:\n{text}"
    time = re.search(r"^([\d.]+) s of ([\d.]+) s of CPU time \(.*?\) has no sample", text, re.M)
    part, whole = (f"{summary['lost_time_ns'][key] / 1e9:.3f}" for key in ("part", "whole"))
    assert (time.groups() if time else ("0.000", "0.000")) == (part, whole), text
    # Where a native stack ends is counted when it is taken. Those of snapshots are unwound by pysym.
    if counts.losses is not None and all(file["settings"].get("unwind") == "tables" for file in summary["files"]):
        for row in summary["native_stacks_cut"]:
            assert row["samples"] == counts.losses.get(row["loss"]), (row, text)
