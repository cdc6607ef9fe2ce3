# SPDX-License-Identifier: Apache-2.0
"""Drives headless Chromium as a person would: opens a file, clicks, types, drags, and looks at what is there.

Chromium takes commands of the DevTools protocol from a pipe (--remote-debugging-pipe): JSON messages, each ended by a zero
byte, which it reads from its file descriptor 3 and writes to 4. So this needs no package, no port and no thread. Nothing
here waits for a time: it waits for conditions, and gives up after TIMEOUT.

A Browser is one Chromium with a profile folder of its own; closing it kills its whole process group. A Page is one tab.
What it says on the console, every exception, every violation of its content security policy and every request but that for
its own file is a fault. The fixture `tab` of conftest.py fails a test whose page had any.
"""
import base64
import contextlib
import fcntl
import functools
import json
import os
import pathlib
import re
import select
import shutil
import signal
import tempfile
import time

TIMEOUT = 120  # seconds; machines of tests are shared
POLL = 0.02
MODIFIERS = {"Alt": 1, "Control": 2, "Shift": 8}
# Keys that are no characters: the number that pages know as keyCode, and the text that they put in.
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "Backspace": (8, ""), "Delete": (46, ""), "Home": (36, ""),
        "End": (35, ""), "PageUp": (33, ""), "PageDown": (34, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""),
        "ArrowRight": (39, ""), "ArrowDown": (40, ""), " ": (32, " ")}  # fmt: skip


@functools.lru_cache(maxsize=None)
def chromium():
    """The path of Chromium, or None."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def command(profile, *arguments):
    """The words that start a headless Chromium which shares nothing with others. Its sandbox refuses to run as root."""
    return [
        chromium(), "--headless", *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={profile}",
        "--disable-gpu", "--force-device-scale-factor=1", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run",
        "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
        "--disable-default-apps", "--disable-extensions", "--disable-sync", "--disable-breakpad", "--password-store=basic",
        "--mute-audio", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
        "--disable-backgrounding-occluded-windows", "--lang=en-US", *arguments,
    ]  # fmt: skip


def runs_in_group(group):
    """Does a process of that process group run? The dead whom nobody has waited for yet do not count."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False


class BrowserError(Exception):
    """Chromium refused a command or went away, or a page did not become what a test waited for."""


class Browser:
    """One Chromium. A context manager; at its end all of its processes and its profile are gone."""

    def __init__(self, *arguments):
        self.profile = pathlib.Path(tempfile.mkdtemp(prefix="pysym-chromium-"))
        self.pages = {}  # by the protocol's session
        self._unread, self._to_write, self._replies, self._number = b"", b"", {}, 0
        self._pid, self._commands, self._messages = self._start(command(self.profile, "--remote-debugging-pipe", *arguments))

    def _start(self, words):
        """Starts it in a session of its own; its process, and our ends of the two pipes."""
        def pipe():
            # Its ends above 4, so that duplicating one to 3 or 4 cannot overwrite the other.
            ends = os.pipe()
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends]
            for fd in ends:
                os.close(fd)
            return high

        (commands_end, commands), (messages, messages_end) = pipe(), pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        said = os.open(self.profile / "stderr", os.O_WRONLY | os.O_CREAT, 0o600)
        ends = {0: null, 1: said, 2: said, 3: commands_end, 4: messages_end}
        # Signals that the test run ignores must not be ignored by Chromium's processes.
        pid = os.posix_spawn(words[0], words, os.environ, setsid=True, setsigmask=[],
                             file_actions=[(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in ends.items()],
                             setsigdef=[signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE])  # fmt: skip
        for fd in (null, said, commands_end, messages_end):
            os.close(fd)
        os.set_blocking(commands, False)
        return pid, commands, messages

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._commands)
        os.close(self._messages)
        # Its helpers are about to die, and may still write into the profile.
        until = time.monotonic() + TIMEOUT
        while runs_in_group(self._pid) and time.monotonic() < until:
            time.sleep(POLL)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _gone(self):
        said = (self.profile / "stderr").read_text(errors="replace").strip().splitlines()
        return BrowserError("Chromium went away: " + "\n".join(said[-20:]))

    def _pump(self, until):
        """Writes what is to be written, and handles one batch of what Chromium says, if there is any before the time."""
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return
            writing = [self._commands] if self._to_write else []
            readable, writable, _ = select.select([self._messages], writing, [], left)
            if writable:
                try:
                    self._to_write = self._to_write[os.write(self._commands, self._to_write[:65536]):]
                except BrokenPipeError:
                    raise self._gone() from None
            if readable:
                got = os.read(self._messages, 1 << 20)
                if not got:
                    raise self._gone()
                *messages, self._unread = (self._unread + got).split(b"\0")
                for message in messages:
                    self._handle(json.loads(message))
                return

    def _handle(self, message):
        if "id" in message:
            self._replies[message["id"]] = message
        elif message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].handle(message["method"], message["params"])

    def listen(self, seconds):
        """Handles what comes within the time."""
        self._pump(time.monotonic() + seconds)

    def send(self, method, session=None, **arguments):
        """One command of the protocol; its number."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments, **({"sessionId": session} if session else {})}
        self._to_write += json.dumps(message).encode() + b"\0"
        return self._number

    def call(self, method, session=None, **arguments):
        """One command of the protocol, and its result."""
        number, until = self.send(method, session, **arguments), time.monotonic() + TIMEOUT
        while number not in self._replies:
            if time.monotonic() > until:
                raise BrowserError(f"no answer to {method} within {TIMEOUT} s")
            self._pump(until)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise BrowserError(f"{method}: {reply['error']['message']} {reply['error'].get('data', '')}")
        return reply["result"]

    @contextlib.contextmanager
    def page(self, width=1280, height=800):
        """A tab that shares no history and no storage with others."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context, width=width, height=height)
        session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.pages[session] = Page(self, session, width, height)
        try:
            yield self.pages[session]
        finally:
            del self.pages[session]
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One tab. Points are in CSS pixels from the upper left corner of what is seen."""

    def __init__(self, browser, session, width, height):
        self._browser, self._session, self._loaded, self._address = browser, session, False, None
        self.faults = []
        for domain in ("Page", "Runtime", "Log", "Network", "Audits", "DOM", "Accessibility", "Inspector"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def call(self, method, **arguments):
        return self._browser.call(method, self._session, **arguments)

    # ---- what it says ----

    def handle(self, method, told):
        """An event of the protocol."""
        name = method.replace(".", "_")
        if hasattr(self, f"_{name}"):
            getattr(self, f"_{name}")(told)

    def _Page_loadEventFired(self, _):
        self._loaded = True

    def _Page_javascriptDialogOpening(self, told):
        self.faults.append(f"dialog: {told['message']}")
        self._browser.send("Page.handleJavaScriptDialog", self._session, accept=False)

    def _Runtime_exceptionThrown(self, told):
        details = told["exceptionDetails"]
        self.faults.append("exception: " + details.get("exception", {}).get("description", details["text"]))

    def _Runtime_consoleAPICalled(self, told):
        words = " ".join(str(a.get("value", a.get("description", a["type"]))) for a in told["args"])
        self.faults.append(f"console.{told['type']}: {words}")

    def _Log_entryAdded(self, told):
        if told["entry"]["level"] in ("warning", "error"):
            self.faults.append(f"{told['entry']['source']} {told['entry']['level']}: {told['entry']['text']}")

    def _Audits_issueAdded(self, told):
        issue = told["issue"]
        details = next(iter(issue.get("details", {}).values()), {})
        if details.get("errorType") == "NavigationEntryMarkedSkippable":
            return  # Back skips what a test did without a hand
        self.faults.append(f"issue {issue['code']}: {json.dumps(details, sort_keys=True)}")

    def _Network_requestWillBeSent(self, told):
        url = told["request"]["url"]
        if url.partition("#")[0] != self._address:
            self.faults.append(f"request: {url[:200]}")

    def _Inspector_targetCrashed(self, _):
        raise BrowserError("the page crashed")

    def take_faults(self):
        """What was wrong so far, for tests that want something to be."""
        taken, self.faults = self.faults, []
        return taken

    def wait_for_fault(self, pattern):
        """Waits for a fault that matches, and forgets all that came until then."""
        found = self._until(lambda: [f for f in self.faults if re.search(pattern, f)], f"a fault matches {pattern}")
        self.take_faults()
        return found[0]

    # ---- opening ----

    def open(self, path, fragment="", until_loaded=True):
        """Opens a file, and waits until all of it was loaded. What its scripts do then is not waited for."""
        self._address = pathlib.Path(path).resolve().as_uri()
        self._navigate("Page.navigate", until_loaded, url=self._address + (f"#{fragment}" if fragment else ""))

    def reload(self):
        self._navigate("Page.reload")

    def _navigate(self, method, until_loaded=True, **arguments):
        self._loaded = False
        result = self.call(method, **arguments)
        if result.get("errorText"):
            raise BrowserError(f"{method}: {result['errorText']}")
        # Another fragment of the same file is no new document, and loads nothing.
        if until_loaded and (method == "Page.reload" or "loaderId" in result):
            self._until(lambda: self._loaded, "the page has loaded")

    def back(self, steps=1):
        """The browser's Back; a negative number of steps is Forward."""
        history = self.call("Page.getNavigationHistory")
        entry = history["entries"][history["currentIndex"] - steps]
        self.call("Page.navigateToHistoryEntry", entryId=entry["id"])
        self._until(lambda: self.call("Page.getNavigationHistory")["currentIndex"] == history["currentIndex"] - steps,
                    "the browser went back")  # fmt: skip

    @property
    def fragment(self):
        return self.evaluate("location.hash").removeprefix("#")

    # ---- looking ----

    def evaluate(self, expression, *values):
        """The value of a JavaScript expression, or what its promise comes to. In it `v` is the list of the values."""
        if values:
            expression = f"(v => {expression})({json.dumps(values)})"
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise BrowserError(f"{details.get('exception', {}).get('description', details['text'])} in {expression[:300]}")
        return done["result"].get("value")

    def _until(self, condition, what):
        until = time.monotonic() + TIMEOUT
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > until:
                raise BrowserError(f"waited {TIMEOUT} s until {what if isinstance(what, str) else what()}")
            self._browser.listen(POLL)

    def wait(self, expression, *values):
        """Waits until a JavaScript expression is true, and returns its value."""
        return self._until(lambda: self.evaluate(expression, *values), expression)

    def wait_for(self, look, expected):
        """Waits until look() returns what is expected."""
        seen = []

        def same():
            seen[:] = [look()]
            return seen[0] == expected

        self._until(same, lambda: f"{seen[0]!r} is {expected!r}")

    def texts(self, selector):
        """What a reader sees of each element."""
        return self.evaluate("[...document.querySelectorAll(v[0])].map(e => e.innerText.trim())", selector)

    def text(self, selector):
        (only,) = self.texts(selector)
        return only

    def rows(self, selector):
        """The cells of each row of a table's body."""
        return self.evaluate(
            "[...document.querySelectorAll(v[0] + ' tbody tr')].map(r => [...r.cells].map(c => c.innerText.trim()))", selector
        )

    def focused(self):
        """The element that has the keys, as a selector that tells it from its siblings."""
        return self.evaluate(
            """(function path(e) {
                if (!e || e === document.body) return ''
                if (e.id) return '#' + CSS.escape(e.id)
                const up = e.parentElement, n = [...up.children].indexOf(e) + 1
                return path(up) + ' > ' + e.localName + ':nth-child(' + n + ')'
            })(document.activeElement)"""
        )

    def box(self, selector, text=None):
        """Where the first element of the selector, with that text in it, is seen, once it was scrolled to: x, y, width, height."""
        found = self.evaluate(
            """(() => {
                const all = [...document.querySelectorAll(v[0])]
                const e = v[1] === null ? all[0] : all.find(e => e.textContent.includes(v[1]))
                if (!e) return null
                e.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'})
                const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2
                const hit = document.elementFromPoint(x, y)
                const own = hit && (e.contains(hit) || hit.contains(e) || (e.labels && [...e.labels].some(l => l.contains(hit))))
                return [r.x, r.y, r.width, r.height, own ? '' : hit ? hit.outerHTML.slice(0, 200) : 'nothing']
            })()""",
            selector, text,
        )  # fmt: skip
        if not found:
            raise BrowserError(f"no {selector}" + (f" with {text!r}" if text else ""))
        *box, other = found
        if other or not box[2] or not box[3]:
            raise BrowserError(f"{selector} {text or ''} at {box} cannot be clicked: {other} is there")
        return box

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def media(self, kind="", **features):
        """As with a printer (kind "print"), or with a system of another taste: prefers_color_scheme="dark"."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def resize(self, width, height, pixels=1):
        """The size of what is seen; `pixels`: those of the screen for a CSS pixel."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=pixels, mobile=False)

    def accessible(self):
        """What a screen reader is told: {role, name, and properties}, with the nodes below as `children`."""
        nodes = {node["nodeId"]: node for node in self.call("Accessibility.getFullAXTree")["nodes"]}

        def told(node):
            below = []
            for child in node.get("childIds", []):
                if child in nodes:
                    below += told(nodes[child])
            if node["ignored"]:
                return below
            properties = {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
            return [{**properties, "role": node["role"]["value"], "name": node.get("name", {}).get("value", ""),
                     "description": node.get("description", {}).get("value", ""), "children": below}]  # fmt: skip

        (root,) = told(next(node for node in nodes.values() if "parentId" not in node))
        return root

    # ---- hands ----

    def _mouse(self, kind, x, y, modifiers=(), **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=sum(MODIFIERS[m] for m in modifiers), **more)

    def move(self, x, y):
        self._mouse("mouseMoved", x, y)

    def click_at(self, x, y, *modifiers, count=1):
        self._mouse("mouseMoved", x, y, modifiers)
        for n in range(1, count + 1):
            self._mouse("mousePressed", x, y, modifiers, button="left", buttons=1, clickCount=n)
            self._mouse("mouseReleased", x, y, modifiers, button="left", buttons=0, clickCount=n)

    def click(self, selector, text=None, *modifiers, count=1):
        x, y, width, height = self.box(selector, text)
        self.click_at(x + width / 2, y + height / 2, *modifiers, count=count)

    def drag(self, points, *modifiers):
        """Presses the button at the first point, and moves through all of them to the last."""
        self._mouse("mouseMoved", *points[0], modifiers)
        self._mouse("mousePressed", *points[0], modifiers, button="left", buttons=1, clickCount=1)
        for point in points[1:]:
            self._mouse("mouseMoved", *point, modifiers, button="left", buttons=1)
        self._mouse("mouseReleased", *points[-1], modifiers, button="left", buttons=0, clickCount=1)

    def wheel(self, x, y, down):
        self._mouse("mouseWheel", x, y, deltaX=0, deltaY=down)

    def key(self, key, *modifiers):
        """Presses a key, given as pages name it: "a", "Enter", "ArrowDown"."""
        # The numbers of other signs depend on the keyboard, and those of their letters are other keys.
        number, text = KEYS.get(key) or (ord(key.upper()) if key.isalnum() else 0, key)
        if "Control" in modifiers or "Alt" in modifiers:
            text = ""
        code = f"Key{key.upper()}" if len(key) == 1 and key.isalpha() else f"Digit{key}" if key.isdigit() else key
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": sum(MODIFIERS[m] for m in modifiers)}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        """Types into what has the keys, letter by letter."""
        for letter in text:
            if letter.isascii():
                self.key(letter)
            else:
                self.call("Input.insertText", text=letter)

    def fill(self, selector, text):
        """Replaces what stands in a text field."""
        self.click(selector)
        self.key("a", "Control")
        self.key("Backspace")
        self.type(text)

    def choose(self, selector, text):
        """Chooses the option of that text in a list, which may have words behind it and a colon, with the arrow keys."""
        self.evaluate("document.querySelector(v[0]).focus()", selector)
        place = "(e => [e.selectedIndex, [...e.options].findIndex(o => o.text.trim() === v[1] || o.text.startsWith(v[1] + ': '))])(document.querySelector(v[0]))"
        at, wanted = self.evaluate(place, selector, text)
        if wanted < 0:
            raise BrowserError(f"{selector} offers no {text!r}")
        for _ in range(abs(wanted - at)):
            self.key("ArrowDown" if wanted > at else "ArrowUp")
        self.wait_for(lambda: self.evaluate(place, selector, text)[0], wanted)
