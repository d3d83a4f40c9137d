"""A headless Chromium that tests drive over a pipe, by the DevTools protocol."""

import base64
import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--remote-debugging-pipe",
)
AS_3_AND_4 = (
    "import os, sys; ends = map(int, sys.argv[1:3]); [os.dup2(end, n) for n, end in enumerate(ends,"
    " 3)]; os.execv(sys.argv[3], sys.argv[3:])"
)
"""A program that hands the ends of two pipes to the browser, which expects them at these
numbers.
"""
PATIENCE = 300.0  # seconds; only a page that hangs takes so long


def browser():
    """Path of an installed browser; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)} is on the path")
    return found


def axe():
    """The script of the accessibility checker: the file that AXE names, or that of the package
    axe-core-python.
    """
    package = importlib.util.find_spec("axe_core_python")
    named = os.environ.get("AXE") or (package and Path(package.origin).with_name("axe.min.js"))
    if named is None:
        pytest.skip("axe is absent: pip install axe-core-python, or let AXE name an axe.min.js")
    return Path(named).read_text(encoding="utf-8")


class Page:
    """One page: what it asks the network for, its scripts' results, its size and its keys."""

    def __init__(self, to_browser, from_browser):
        self.to_browser, self.from_browser, self.number, self.rest = (
            to_browser,
            from_browser,
            0,
            b"",
        )
        self.session, self.requests, self.faults = None, [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        """The result of a command; what the browser reports meanwhile is recorded."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        command |= {"sessionId": self.session} if self.session else {}
        os.write(self.to_browser, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.from_browser, 2**16)
            assert part, "the browser closed its pipe"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        said = json.loads(message)
        if said.get("method") == "Network.requestWillBeSent":
            self.requests.append(said["params"]["request"]["url"])
        if said.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.faults.append(said["params"])
        return said

    def open(self, path, width=1280, height=900, scheme="light"):
        """Show a file at this size and colour scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.send("Page.navigate", url=path.as_uri())
        self.wait('document.readyState === "complete" && location.protocol === "file:"')

    def run(self, script):
        """The value of an expression, once it is settled."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, condition):
        """Until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < until, f"not true after {PATIENCE:g} s: {condition}"
            time.sleep(0.02)

    def press(self, key, code):
        """A key that is pressed and released."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def violations(self):
        """What the accessibility checker axe finds wrong with the page: each rule, and the first
        place.
        """
        self.run(f"{axe()}; null")
        found = self.run(
            "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
        )
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]

    def picture(self, path):
        """Save a picture of the whole page."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def choose(self, element, path):
        """A file for a file input."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=element)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])


@contextmanager
def pages(folder):
    """A page in a browser whose profile is in this folder; the browser ends with the block."""
    command = [browser(), *OPTIONS, f"--user-data-dir={folder}"]
    read_here, write_there = os.pipe()
    read_there, write_here = os.pipe()
    # clear of 3 and 4
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_there, write_there)]
    start = [sys.executable, "-c", AS_3_AND_4, *map(str, ends), *command]
    process = subprocess.Popen(
        start, pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for end in (read_there, write_there, *ends):
        os.close(end)
    try:
        yield Page(write_here, read_here)
    finally:
        process.terminate()
        process.wait(20)
        os.close(write_here)
        os.close(read_here)
