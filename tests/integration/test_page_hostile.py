# SPDX-License-Identifier: Apache-2.0
"""Hostile names, deep stacks and scripts do no harm in the page of `pysym -f html`.

Scripts may want the network, and get none.
"""
import base64
import hashlib
import http.server
import re
import sys
import threading

import pytest

from conftest import ROOT
from page_truth import Truth
from page_user import RICH, pysym, rows_of_page, rows_of_top

sys.path.insert(0, str(ROOT / "tests/hostile"))
import craft  # noqa: E402

pytestmark = pytest.mark.unsanitized

MORE = [b"<img src=x onerror=alert(1)>", "\u05d0\u05d1\u05d2 \u202eabc".encode(), b"%script%", b"&lt;b&gt;", b"'\"`${1}",
        b"</title><h1>x", b"__proto__", b"constructor"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Processes, threads, functions and files of these names, calling each other."""
    path = tmp_path_factory.mktemp("hostile") / "<b>&quot;'.bin"
    # The table cuts longer names, and shows no blank ones.
    path.write_bytes(craft.calls_by_name([name[:300] for name in craft.HOSTILE_NAMES + MORE if name.strip()]))
    return path


def test_hostile_names(user, page, hostile):
    """They are text, in every view, and change nothing else: the page has the elements that its scripts make."""
    user.open(page(hostile))
    truth = Truth(pysym, hostile)
    assert rows_of_page(user.table()) == rows_of_top(truth.event("cpu-clock"))
    for pattern in ("onerror", "</script>"):
        user.search(pattern)
        user.tab.click("#panel-table tbody td.name")
        assert pattern in user.tab.text("#selected h2")
        user.show("source")
        user.show("flame")
        user.reload()
        assert pattern in user.tab.text("#selected h2")
        user.show("table")
    user.show("about")
    made_by_names = "img, iframe, object, embed, svg, style ~ style, link, base, b[onclick], [onerror], [onload], title ~ title"
    assert user.tab.evaluate("document.querySelectorAll(v[0]).length", made_by_names) == 0
    assert user.tab.evaluate("document.querySelectorAll('h1').length") == 1
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", user.tab.evaluate("document.body.innerText + document.title"))


def test_hostile_addresses(user, page, made):
    """An address that somebody made up is ignored where it is not understood."""
    written = page(made(**RICH))
    user.open(written)
    whole = user.tab.text("#head-shown")
    for fragment in ("%", "%00%ff", "tab=%3Cimg%3E&zoom=%3Cimg%3E&thread=%3Cb%3E&time=1e999-&line=-1", "time=9-1", "event=__proto__",
                     "layers=&layers=x", "tab=constructor", "search=(((", "from=leaves&" * 3000, "sort=__proto__"):  # fmt: skip
        user.tab.evaluate("location.hash = v[0]", fragment)
        user.tab.evaluate("new Promise(done => setTimeout(done))")
        if "layers" not in fragment:
            assert user.tab.text("#head-shown") == whole, fragment


def test_deep_stacks(user, page, made):
    """Of 900 frames the innermost is found by keys and by scrolling, and the canvas stays as large as what is seen."""
    trace = made(samples=40, stacks=2, depth=900, native=0)
    truth = Truth(pysym, trace)
    user.open(page(trace))
    deepest = max(truth.stacks("cpu-clock"), key=len)
    assert len(deepest) == 900
    x, y, width, height = user.tab.box("#flame")
    user.search("level899")
    user.tab.click("h1")
    user.tab.key("n")
    assert re.match(r"Work\.level899_\d ", user.tab.text("#status"))
    user.tab.click_at(x + 3, y + 5)
    user.tab.evaluate("document.getElementById('flame-box').scrollTop = 0")
    user.tab.wheel(x + 10, y + 100, 1e6)
    user.tab.wait("document.getElementById('flame-box').scrollTop > 10000")
    assert user.tab.evaluate("document.getElementById('flame').height") <= 2000
    for row in range(1, 20):
        user.tab.move(x + 20, y + height - 10 * row)
        if "level899" in user.tab.text("#status"):
            break
    else:
        raise AssertionError("the innermost frame is not there")
    user.tab.click("#flame-bar label", "from the leaves")
    user.search("")
    assert rows_of_page(user.table()) == rows_of_top(truth.event("cpu-clock"))


# ---- the policy ----

class Listener(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_error(404)

    do_POST = do_HEAD = do_OPTIONS = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def listener():
    """A web server that remembers what it was asked for."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        server.asked, server.daemon_threads = [], True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


WAYS_OUT = """
const made = (tag, properties) => document.body.append(Object.assign(document.createElement(tag), properties))
window.refused = []
document.addEventListener('securitypolicyviolation', event => refused.push(event.effectiveDirective))
for (const way of [
    () => fetch('URL/fetch').catch(() => 0), () => { new Image().src = 'URL/img' }, () => import('URL/import').catch(() => 0),
    () => made('script', {src: 'URL/script'}), () => made('link', {rel: 'stylesheet', href: 'URL/style'}),
    () => made('iframe', {src: 'URL/frame'}), () => made('object', {data: 'URL/object'}), () => made('video', {src: 'URL/video'}),
    () => new Worker('URL/worker'), () => new WebSocket('URL/socket'.replace('http', 'ws')),
    () => new EventSource('URL/events'), () => navigator.sendBeacon('URL/beacon', 'x'),
    () => new FontFace('f', 'url(URL/font)').load().catch(() => 0),
    () => { document.body.style.backgroundImage = 'url(URL/background)' },
    () => { const form = document.createElement('form'); form.action = 'URL/form'; document.body.append(form); form.submit() },
    () => { const base = document.createElement('base'); base.href = 'URL/base/'; document.head.append(base) },
]) {
    try { way() } catch (error) { refused.push(error.name) }
}
"""


def with_script(text, script):
    """The page with another script in the place of its own, which its policy allows."""
    begin = text.rindex("<script>") + len("<script>")
    end = text.index("</script>", begin)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    patched = re.sub(r"script-src 'sha256-[^']*'", f"script-src 'sha256-{digest}'", text[:begin], count=1)
    assert digest in patched
    return patched + script + text[end:]


def test_the_policy_allows_no_network(tab, page, made, listener, tmp_path):
    """A script that the policy lets run can load nothing and send nothing."""
    url = f"http://127.0.0.1:{listener.server_port}"
    patched = tmp_path / "patched.html"
    patched.write_text(with_script(page(made(**RICH)).read_text(), WAYS_OUT.replace("URL", url)))
    tab.open(patched, until_loaded=False)
    wanted = ["connect-src", "img-src", "script-src-elem", "style-src-elem", "frame-src", "object-src", "media-src", "font-src",
              "form-action", "base-uri"]  # fmt: skip
    for directive in wanted:
        tab.wait("window.refused && refused.some(found => found.startsWith(v[0]))", directive)
    assert listener.asked == []
    tab.take_faults()


def test_the_policy_runs_no_other_script(tab, page, made, tmp_path):
    """What is not the page's own script does not run, nor does a handler in markup, a javascript: address or eval()."""
    own = page(made(**RICH)).read_text()
    patched = tmp_path / "patched.html"
    patched.write_text(own.replace("<h1>", "<h1 onclick='window.ran = 1'><a id=go href='javascript:window.ran = 2'>go</a>", 1)
                       .replace("</body>", "<script>window.ran = 3</script><style>h1 { display: none }</style></body>"))
    tab.open(patched)
    tab.evaluate("window.pageReady.then(() => 0)")
    tab.evaluate("document.getElementById('head-program').before(document.getElementById('go') || '')")
    tab.click("h1")
    assert tab.evaluate("[typeof window.ran, getComputedStyle(document.querySelector('h1')).display !== 'none']") == ["undefined", True]
    refused = "\n".join(tab.take_faults())
    assert "script-src" in refused and "style-src" in refused


def test_the_page_loads_nothing(page, made):
    """Its source names no place outside of itself."""
    text = page(made(**RICH)).read_text()
    assert not re.search(r"<(?:link|img|iframe|object|embed|video|audio|base)\b|\bsrc=|\bsrcset=|@import|url\(|<a [^>]*href=\"[^#]", text)
