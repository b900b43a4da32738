"""The README's recording: its agent on a real server that is killed while a step runs.

python -m tests.browser.crash [FOLDER]    # writes docs/screens/crash.webp, and every frame into FOLDER
"""

import io
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright
from scripts import page as page_build

from tests.browser.conftest import QUIET, chromium
from tests.docs.pages import ROOT, blocks
from tests.serving import Server, lasting_port

FILE = ROOT / "docs/screens/crash.webp"
PAGE_SIZE: ViewportSize = {"width": 900, "height": 500}
TERMINAL_SIZE: ViewportSize = {"width": 900, "height": 212}
PACE_S = 0.1
# What is beside the README's agent: a bank that is slow, and books each refund in a file.
BANK = """
import time
from pathlib import Path

BOOKED = Path("bank.txt")


def find_order(text: str) -> dict[str, int]:
    return {"id": 7, "euros": 120}


def refund(order: dict[str, int]) -> None:
    with BOOKED.open("a") as bank:
        bank.write(f"order {order['id']}: {order['euros']} euros refunded\\n")
    time.sleep(8)


def is_refunded(order: dict[str, int]) -> bool:
    time.sleep(1)
    return BOOKED.exists()
"""
TERMINAL = """<meta charset="utf-8"><style>
body { margin: 0; background: #16181d; color: #d8dce4; font: 15px/1.5 "DejaVu Sans Mono", monospace; }
pre { position: absolute; bottom: 0; margin: 12px 16px; font: inherit; white-space: pre-wrap; }
b { color: #7fd18b; font-weight: normal } .bad { color: #ff8a80 }
</style><body><pre id="text"></pre></body>"""
PROMPT = "<b>$</b> "


@dataclass
class Film:
    """Pictures of the page above the terminal, with the time of each."""

    page: Page
    terminal: Page
    text: str = ""
    frames: list[tuple[float, Image.Image]] = field(default_factory=list[tuple[float, Image.Image]])

    def roll(self, seconds: float) -> None:
        """Takes pictures for so long."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self._take(now)
            self.page.wait_for_timeout(max(0, PACE_S - (time.monotonic() - now)) * 1000)

    def show(self, text: str, seconds: float = 0.3) -> None:
        """Adds a text to what the terminal shows."""
        self.text += text
        self.terminal.evaluate("text => { document.getElementById('text').innerHTML = text }", self.text)
        self.roll(seconds)

    def type(self, command: str, style: str = "") -> None:
        """Types a command behind the terminal's prompt."""
        for at in range(0, len(command), 4):
            self.show(f'<span class="{style}">{command[at : at + 4]}</span>', 0.05)
        self.show("\n", 0.2)

    def save(self) -> None:
        """Writes what changed from frame to frame; the last one stays."""
        changed = [self.frames[0]]
        for at, frame in self.frames[1:]:
            if frame.tobytes() != changed[-1][1].tobytes():
                changed.append((at, frame))
        lasts = [round((b - a) * 1000) for (a, _), (b, _) in pairwise(changed)]
        first, *rest = (frame for _, frame in changed)
        first.save(
            FILE, save_all=True, append_images=rest, duration=[*lasts, 4000], loop=0, quality=70, method=4
        )

    def _take(self, now: float) -> None:
        upper, lower = (Image.open(io.BytesIO(it.screenshot())) for it in (self.page, self.terminal))
        frame = Image.new("RGB", (upper.width, upper.height + lower.height))
        frame.paste(upper, (0, 0))
        frame.paste(lower, (0, upper.height))
        self.frames.append((now, frame))


def announced(server: Server) -> str:
    """The line that says where a server listens."""
    return next(line for line in server.lines if "listening on" in line)


def record(film: Film, folder: Path) -> None:
    """A turn that is killed while its refund runs."""
    where = lasting_port()
    started = "threadkeep serve --agents shop:orders"
    with Server(folder, "--agents", "shop:orders", *where) as server:
        (agent,) = (
            it["id"] for it in server.client().get("/api/agents").json()["items"] if it["name"] == "Orders"
        )
        film.page.goto(f"{server.url}/#/new/{agent}")
        box = film.page.get_by_role("textbox", name="Message")
        expect(box).to_be_visible()
        film.text = f"{PROMPT}{started}\n{announced(server)}"
        film.show("", 0.8)
        for letter in "Please refund order 7.":
            box.press_sequentially(letter)
            film.roll(0.02)
        box.press("Enter")
        yes = film.page.get_by_role("button", name="Yes")
        while not yes.is_visible():
            film.roll(0.1)
        film.roll(1.2)
        yes.click()
        while not (folder / "bank.txt").exists():
            film.roll(0.1)
        film.roll(1.0)
        film.show(PROMPT, 0.1)
        film.type(f"kill -9 {server.process.pid}", "bad")
        server.kill()
        film.show("Killed\n", 2.0)
    film.show(PROMPT, 0.2)
    film.type(started)
    with Server(folder, "--agents", "shop:orders", *where) as server:
        film.show(announced(server), 0.1)
        while not film.page.get_by_text("It is refunded.").is_visible():
            film.roll(0.1)
        film.roll(1.0)
        film.show(PROMPT, 0.1)
        film.type("cat bank.txt")
        film.show((folder / "bank.txt").read_text(), 1.0)


def main() -> None:
    """Records the film."""
    page_build.build()
    (agent,) = (block.code for block in blocks(ROOT / "README.md") if block.file == "shop.py")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "shop.py").write_text(agent)
        (folder / "bank.py").write_text(BANK)
        browser = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
        context = browser.new_context(viewport=PAGE_SIZE, locale="en-GB")
        terminal = browser.new_page(viewport=TERMINAL_SIZE)
        terminal.set_content(TERMINAL)
        film = Film(context.new_page(), terminal)
        record(film, folder)
        browser.close()
    film.save()
    for folder in map(Path, sys.argv[1:]):
        folder.mkdir(parents=True, exist_ok=True)
        for at, (_, frame) in enumerate(film.frames):
            frame.save(folder / f"{at:04}.png")


if __name__ == "__main__":
    main()
