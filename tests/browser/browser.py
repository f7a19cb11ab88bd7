"""A headless Chromium, driven over a pipe with its DevTools protocol: open a page, run JavaScript in it, move the mouse,
take pictures. Python's standard library is enough."""
import base64
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

NAMES = ["chromium-headless-shell", "chromium", "google-chrome", "chrome"]
TIMEOUT = 60  # seconds: a busy machine is no fault of the page's


def find():
    """The path of a browser (STOKER_BROWSER names one), or None. A snap's sees neither our files nor our pipes."""
    chosen = os.environ.get("STOKER_BROWSER")
    paths = filter(None, map(shutil.which, [chosen] if chosen else NAMES))
    return next((path for path in paths if os.path.basename(os.path.realpath(path)) != "snap"), None)


class Browser:
    def __init__(self, path):
        self.profile = tempfile.TemporaryDirectory(prefix="stoker_browser_", ignore_cleanup_errors=True)
        commands, self.write_end = os.pipe()
        self.read_end, answers = os.pipe()
        # The browser reads commands from its descriptor 3 and answers on 4. Ours are moved out of the way first.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        os.close(commands)
        os.close(answers)
        arguments = [path, "--headless", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--no-first-run",
                     "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
                     # The sandbox refuses to run as root and in many containers; the pages are our own.
                     "--no-sandbox"]
        self.log = open(os.path.join(self.profile.name, "stderr.txt"), "w+", encoding="utf-8", errors="replace")
        moved = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash"]
        self.process = subprocess.Popen([*moved, *arguments, "about:blank"], pass_fds=ends, stdout=self.log, stderr=self.log)
        for end in ends:
            os.close(end)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.problems = []  # errors and warnings of the page's console
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.write_end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        self.log.close()
        self.profile.cleanup()

    def message(self, deadline):
        """The next message from the browser; events are noted on the way."""
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.read_end, 1 << 16)
            if not data:
                self.log.seek(0)
                raise RuntimeError("the browser ended:\n" + self.log.read()[-2000:])
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.note(message["method"], message["params"])
        return message

    def note(self, method, params):
        self.events.append((method, params))
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            values = [str(a.get("value", a.get("description"))) for a in params["args"]]
            self.problems.append(f"console.{params['type']}: {' '.join(values)}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"log: {params['entry']['text']}")

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + TIMEOUT
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self.message(deadline)

    def requests(self):
        """The addresses that the page asked for since open()."""
        return [params["request"]["url"] for method, params in self.events if method == "Network.requestWillBeSent"]

    def run(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self):
        """Waits until the page has been drawn after a change."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))")

    def resize(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        self.settle()

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def move_mouse(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def picture(self, scale=1.0, whole=True):
        """A PNG of the whole page, or of what is in view."""
        size = self.call("Page.getLayoutMetrics")
        box = size["cssContentSize"] if whole else size["cssVisualViewport"]
        clip = {"x": 0 if whole else box["pageX"], "y": 0 if whole else box["pageY"],
                "width": box.get("width", box.get("clientWidth")), "height": box.get("height", box.get("clientHeight")),
                "scale": scale}
        answer = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


def _paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def pixels(png):
    """The pixels of a PNG of 8-bit colours, as rows of tuples."""
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            step = {2: 3, 6: 4}[colours]
            if depth != 8:
                raise ValueError("not a PNG of 8-bit colours")
        elif kind == b"IDAT":
            data += body
    data = zlib.decompress(data)
    rows, before = [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        method, row = data[start], bytearray(data[start + 1:start + 1 + width * step])
        for i in range(len(row) if method else 0):
            left = row[i - step] if i >= step else 0
            corner = before[i - step] if i >= step else 0
            row[i] = (row[i] + [0, left, before[i], (left + before[i]) // 2, _paeth(left, before[i], corner)][method]) & 255
        rows.append([tuple(row[x:x + step]) for x in range(0, len(row), step)])
        before = row
    return rows
