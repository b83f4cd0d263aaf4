"""A real browser without a window, spoken to over two pipes in its own debugging protocol; no port is opened."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_S = 90.0  # a busy machine may take long to start a browser; none of it is waited for in vain
# The browser reads from its descriptor 3 and writes to its descriptor 4.
LAUNCHER = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_browser() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in one browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._unread = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while (answer := self._receive()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def open_page(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def resize(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def load(self, path: Path) -> None:
        self.events.clear()
        answer = self.call("Page.navigate", url=path.as_uri())
        assert "errorText" not in answer, answer
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def value(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, *, whole: bool = False) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """What a developer would see in red: errors and warnings of the console, refused or failed requests."""
        told = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed"}
        return [json.dumps(event) for event in self.events if event.get("method") in told]

    def requests(self) -> list[str]:
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def _receive(self) -> dict[str, Any]:
        end = monotonic() + PATIENCE_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - monotonic()))
            assert ready, f"the browser said nothing for {PATIENCE_S:.0f} s"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._unread += data
        message, _, self._unread = self._unread.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def running(program: str, profile: Path) -> Iterator[Browser]:
    """Whatever happens, the browser is gone afterwards."""
    browser_in, to_browser = os.pipe()
    from_browser, browser_out = os.pipe()
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
    ]
    command = [program, *flags, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(browser_in), str(browser_out), *command],
        pass_fds=(browser_in, browser_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(browser_in)
    os.close(browser_out)
    try:
        browser = Browser(to_browser, from_browser)
        browser.open_page()
        yield browser
    finally:
        os.close(to_browser)  # which tells the browser to end
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_browser)
