"""Kills each framework's own server in the middle of a visit to the shop, and says what became of the visit.

    python -m bench.peers.shops [langgraph agno pydantic_ai_ag_ui pydantic_ai_dbos]

Three times, each on a new server: while it notes something down (a tool that writes), while the refund waits
for an approval, and while it refunds. Then the server is started again in the same folder; for a
while, nobody asks it anything.
"""

import contextlib
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.frameworks.scripted import model_url
from tests.frameworks.shop import REFUND

from bench.peers.contender import Api, Place
from bench.peers.environments import python_of, versions
from bench.peers.processes import end, free_port, start, wait_until_open
from bench.peers.shops.program import CALLS, MODEL_URL
from bench.peers.shops.shop import ShopServer

NAMES = ("langgraph", "agno", "pydantic_ai_ag_ui", "pydantic_ai_dbos")
PATIENCE_S = 120
SETTLED_S = 12
"""How long something has been so before the kill: long enough for whoever writes only every ten seconds."""
ALONE_S = 45
EXPECTED = Counter({"price began": 1, "stock began": 1, "note began": 1, "refund began": 1})


@dataclass
class Visit:
    """A visit at a server of its own."""

    shop: ShopServer
    place: Place
    calls_file: Path

    def __post_init__(self) -> None:
        self.api = Api(self.place.port)
        self._running = None
        self.start()

    def start(self) -> None:
        """Starts the server, also again."""
        launch = self.shop.launch(self.place)
        variables = {CALLS: str(self.calls_file), MODEL_URL: self.place.model_url, **launch.environment}
        self._running = start(launch.command, self.place.folder, variables)
        wait_until_open(self.place.port, self._running, self.place.folder.with_suffix(".log"))

    def kill_later(self) -> None:
        """Kills it once it has had time to write what there is, and starts it again."""
        time.sleep(SETTLED_S)
        self.kill()
        self.start()

    def kill(self) -> None:
        """Ends it with SIGKILL, and all that it has started."""
        assert self._running is not None
        end(self._running, signal.SIGKILL)

    @property
    def calls(self) -> Counter[str]:
        """What the shop's functions have done."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return Counter(lines)

    def in_background(self, what: Callable[[Api], object]) -> None:
        """Asks the server for something that may end with it."""

        def run() -> None:
            with contextlib.suppress(OSError, HTTPException):
                what(self.api)

        threading.Thread(target=run, daemon=True).start()

    def until(self, holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
        """Waits until something is so; whether it is."""
        before = time.monotonic()
        while time.monotonic() - before < patience_s:
            with contextlib.suppress(OSError, HTTPException, RuntimeError):
                if holds():
                    return True
            time.sleep(0.2)
        return False

    def waits(self) -> bool:
        """Whether the refund waits for its approval."""
        return self.shop.waits(self.api)

    def did(self, line: str) -> Callable[[], bool]:
        """Whether a function of the shop came so far."""
        return lambda: line in self.calls


def killed_while_it_notes(visit: Visit) -> None:
    """Then nobody knows whether the note is there."""
    visit.in_background(lambda api: visit.shop.ask(api, REFUND))
    assert visit.until(visit.did("note began")), "it never noted anything"
    visit.kill_later()
    visit.until(visit.waits, ALONE_S)


def killed_while_it_waits(visit: Visit) -> None:
    """Then the approval is given."""
    visit.in_background(lambda api: visit.shop.ask(api, REFUND))
    assert visit.until(visit.waits), "it never asked"
    visit.kill_later()
    if visit.until(visit.waits, ALONE_S):
        visit.in_background(visit.shop.approve)
        visit.until(visit.did("refund ended"), ALONE_S)


def killed_while_it_refunds(visit: Visit) -> None:
    """After the approval."""
    visit.in_background(lambda api: visit.shop.ask(api, REFUND))
    assert visit.until(visit.waits), "it never asked"
    visit.in_background(visit.shop.approve)
    assert visit.until(visit.did("refund began")), "it never refunded"
    visit.kill_later()
    visit.until(lambda: visit.calls["refund ended"] > 0, ALONE_S)


SCENES = (killed_while_it_notes, killed_while_it_waits, killed_while_it_refunds)


@contextlib.contextmanager
def visiting(name: str, folder: Path) -> Generator[Visit]:
    """A visit at a new server."""
    shop: ShopServer = import_module(f"bench.peers.shops.{name}").SHOP
    folder.mkdir()
    place = Place(python_of(shop.lock), folder, free_port(), model_url())
    visit = Visit(shop, place, folder.with_suffix(".calls"))
    try:
        yield visit
    finally:
        visit.kill()


def describe(visit: Visit) -> str:
    """What there is now."""
    try:
        waits, texts = visit.waits(), visit.shop.texts(visit.api)
    except (OSError, HTTPException, RuntimeError, KeyError) as error:
        waits, texts = False, [f"{type(error).__name__}: {error}"]
    twice = [it for it, count in visit.calls.items() if count > EXPECTED.get(it, 1)]
    return f"ran: {dict(visit.calls)}; twice: {twice}; waits: {waits}; shows: {[it[:60] for it in texts]}"


def main(names: Sequence[str]) -> None:
    """Prints what was seen."""
    with TemporaryDirectory(prefix="threadkeep-shops-") as folder:
        for name in names or NAMES:
            shop: ShopServer = import_module(f"bench.peers.shops.{name}").SHOP
            print(f"{shop.title}: {versions(python_of(shop.lock), shop.packages)}", flush=True)
            for scene in SCENES:
                title = scene.__name__.replace("_", " ")
                try:
                    with visiting(name, Path(folder, f"{name}-{scene.__name__}")) as visit:
                        scene(visit)
                        time.sleep(2)
                        print(f"  {title}: {describe(visit)}", flush=True)
                except (AssertionError, RuntimeError) as error:
                    print(f"  {title}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
