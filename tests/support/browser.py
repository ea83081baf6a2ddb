"""A page in headless Chromium, driven over DevTools: real clicks and keys, and a record of everything it requested."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}


def chromium() -> str | None:
    """The browser's executable, None when there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


_CONTRAST = """element => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => channels(colour).slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const clear = behind => channels(getComputedStyle(behind).backgroundColor)[3] === 0;
  let behind = element;
  while (behind.parentElement && clear(behind)) behind = behind.parentElement;
  const pair = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}"""


class Page:
    """One page. `requests` are the addresses it requested, `dialogs` those it opened, `refused` what was blocked."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.refused: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def open(self, path: Path, *, fragment: str = "") -> None:
        """Load a file and wait until it is complete; the record of the previous page is cleared."""
        self._ask("Page.navigate", url="about:blank")
        self._until_whole("about:blank")
        self.requests.clear(), self.dialogs.clear(), self.refused.clear()
        self._ask("Page.navigate", url=path.as_uri() + fragment)
        self._until_whole(path.as_uri())

    def show(self, *, width: int, height: int, dark: bool = False, media: str = "") -> None:
        """Set the window size, the colour scheme, and `print` or screen media."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, evaluated by the debugger: the page's own policy does not apply."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def visible(self, selector: str) -> bool:
        """True when an element is drawn inside the window."""
        return bool(
            self.run(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                " if (!e || !e.checkVisibility()) return false; const r = e.getBoundingClientRect();"
                " return r.width > 0 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth })()"
            )
        )

    def text(self, selector: str) -> str:
        """The text of an element as rendered."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def contrast(self, selector: str) -> float:
        """The contrast of an element's text with its background as defined by WCAG (1 to 21)."""
        return float(self.run(f"({_CONTRAST})(document.querySelector({json.dumps(selector)}))"))

    def click(self, selector: str) -> None:
        """Click the first line of an element, scrolling it into view if necessary."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoViewIfNeeded(); const r = e.getClientRects()[0];"
            " return [r.left + r.width / 2, r.top + r.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key."""
        code: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        self._ask("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": "\r"} if key == "Enter" else {}))
        self._ask("Input.dispatchKeyEvent", type="keyUp", **code)

    def picture(self, path: Path) -> None:
        """Save a screenshot of the window."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def _until_whole(self, address: str) -> None:
        while not self.run(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(address)})"):
            pass  # each request waits for the browser

    def _ask(self, method: str, **given: Any) -> dict[str, Any]:
        self._last += 1
        asked = self._last
        session = {"sessionId": self._session} if self._session else {}
        self._socket.send(json.dumps({"id": asked, "method": method, "params": given, **session}))
        while True:
            answer = json.loads(self._socket.recv(timeout=300))
            if answer.get("id") == asked:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, method: str | None, given: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(given["message"])
            self._socket.send(json.dumps(self._dismissal()))
        elif method == "Log.entryAdded" and given["entry"]["source"] == "security":
            self.refused.append(given["entry"]["text"])

    def _dismissal(self) -> dict[str, Any]:
        self._last += 1
        params = {"accept": False}
        return {"id": self._last, "method": "Page.handleJavaScriptDialog", "params": params, "sessionId": self._session}


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """A page in a separate browser, which is terminated afterwards."""
    with tempfile.TemporaryDirectory(prefix="citeloom-browser-", ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
        process = subprocess.Popen(
            [program, *options, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            address = next(
                line.rpartition(" on ")[2].strip() for line in process.stderr if "DevTools listening" in line
            )
            with connect(address, max_size=None, compression=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(timeout=300)
            process.stderr.close()
