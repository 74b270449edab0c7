"""A headless browser that is driven through WebDriver: nothing but chromium, chromedriver and the standard library."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing from elsewhere
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Control": "\ue009", "Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Down": "\ue015", "End": "\ue010"}


class Browser:
    """One page."""

    def __init__(self, profile: Path, width: int = 1400, height: int = 1000) -> None:
        driver, browser = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
        assert driver, "these tests need chromedriver: apt-get install chromium-driver"
        assert browser, "these tests need chromium: apt-get install chromium"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.process = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{self.port}"
        wait(lambda: self._send("GET", "/status")["ready"])
        arguments = [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        options = {"binary": browser, "args": arguments}
        asked = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": asked}})
        self.base += f"/session/{session['sessionId']}"

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, address: str) -> None:
        """Goes to an address."""
        self._send("POST", "/url", {"url": address})

    def run(self, script: str, *given: Any) -> Any:
        """What a piece of JavaScript returns."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(given)})

    def find(self, selector: str) -> str:
        """The first element that a CSS selector names."""
        return str(self._send("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT])

    def click(self, selector: str) -> None:
        """Clicks on an element."""
        self._send("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Types a text; KEYS holds what has no character."""
        self._send("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def text(self, selector: str) -> str:
        """What an element shows."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def until(self, script: str, *given: Any, seconds: float = 60.0) -> Any:
        """Waits until a piece of JavaScript returns something."""
        return wait(lambda: self.run(script, *given), seconds)

    def messages(self) -> list[str]:
        """What the browser complained about since the last call."""
        found = self._send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path: Path) -> None:
        """The page as a picture."""
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))

    def resize(self, width: int, height: int) -> None:
        """As on a screen of this size; 0 by 0: as it was."""
        given = {"width": width, "height": height, "deviceScaleFactor": 0, "mobile": False}
        self._send("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": given})

    def close(self) -> None:
        """Ends the browser."""
        try:
            self._send("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()


def wait(look: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What a look gives as soon as it is something."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = look()
        except (OSError, urllib.error.URLError):
            found = None
        if found:
            return found
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)
