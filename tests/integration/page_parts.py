# SPDX-License-Identifier: Apache-2.0
"""The sources of the page of `pysym -f html`, as the Makefile puts them together."""
import re

from conftest import ROOT

FOLDER = ROOT / "formats/emit/html"


def scripts():
    """The scripts, in the order in which the page has them; the last one starts it."""
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    names = re.search(r"^HTML_SCRIPTS *:?= *(.*)$", makefile, re.M)
    return [FOLDER / name for name in names[1].split()]


def page_of(script_texts):
    """The markup of page.html with these scripts, and without data, style and policy."""
    page = (FOLDER / "page.html").read_text()
    for mark in ("policy", "title", "style", "data"):
        page = page.replace(f"%{mark}%", "")
    page = page.replace('<meta http-equiv="Content-Security-Policy" content="">', "")
    begin, end = page.split("<script>%script%</script>")
    return begin + "".join(f"<script>{text}</script>\n" for text in script_texts) + end
