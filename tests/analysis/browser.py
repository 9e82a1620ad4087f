"""A headless Chromium, driven over its DevTools pipe: no other package is needed."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATH = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = ("--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--no-first-run", "--no-default-browser-check", "--disable-extensions")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
FLAGS += ("--disable-dev-shm-usage", "--no-sandbox")  # no sandbox where tests run as root


class Browser:
    """One page of one browser; ``events`` are the DevTools events so far."""

    def __init__(self) -> None:
        assert PATH is not None
        self.folder = tempfile.TemporaryDirectory(
            prefix="report-browser-", ignore_cleanup_errors=True
        )
        (read, self._write), (self._read, write) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (read, write)]
        pipes = f'exec "$@" 3<&{high[0]} 4>&{high[1]}'  # where Chromium looks for them
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", PATH, *FLAGS, f"--user-data-dir={self.folder.name}"],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in (read, write, *high):
            os.close(fd)
        self.events: list[dict[str, Any]] = []
        self._buffer, self._number, self._session = b"", 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a DevTools method and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, page: Path, width: int, height: int, *, is_phone: bool = False) -> None:
        """Load a file in a window of that size, and wait until it has loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._next()

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self.send("Runtime.evaluate", expression=script, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and uncaught exceptions."""
        found = []
        for event in self.events:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                found.append(json.dumps(params["entry"]))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] != "log":
                found.append(json.dumps(params["args"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent]

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.send("Browser.close")
        self.process.wait()
        for fd in (self._read, self._write):
            os.close(fd)
        self.folder.cleanup()
