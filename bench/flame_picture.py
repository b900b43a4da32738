"""The picture of many stacks: who called whom, from top to bottom, as wide as the time it took."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from bench.drawing import CHARACTER, Drawing, fitted

Stacks = Counter[tuple[str, ...]]
"""How often each stack was seen, its frames from the outermost to the innermost as `name (file:line)`."""

LEAST_SHARE = 0.005
WIDTH, ROW, MARGIN, HEAD = 1000, 18, 12, 76
SIZE = 11

# From the outermost rooms to the innermost; a colour for light pages and one for dark ones.
ROOMS = {
    "gateways": ("#c9b6f2", "#5b3fa8"),
    "engine": ("#f7b7c8", "#94324f"),
    "services": ("#f9d0a0", "#8a5312"),
    "runtime": ("#fbe38e", "#6f5a00"),
    "context": ("#e3e79a", "#5a6110"),
    "log": ("#b9e3a1", "#2f6b1d"),
    "storage": ("#9fe0d0", "#0f6659"),
    "http": ("#a9d2f7", "#1f5b93"),
    "protocols": ("#bcc7f7", "#3a4aa0"),
    "other": ("#e2d9cf", "#5d5449"),
    "libraries": ("#dde2e7", "#3d444d"),
}

MAIN_THREAD = "MainThread"

_THREAD = re.compile(r"thread \((?P<id>\d+)\)(: (?P<name>.*?)[-_]?\d*)?$")
_FRAME = re.compile(r"(?P<name>.+) \((?P<file>[^()]+?)(:\d+)?\)$")
# What carries every call but does none of the work: the way into the loop, into a thread, into a module.
_PLUMBING = re.compile(r"\((<frozen |asyncio/|threading\.py|concurrent/futures/|contextlib\.py|runpy\.py)")
_BEGINS_A_THREAD = re.compile(r"Thread\.run \(threading\.py")
_AWAITS_WORK = re.compile(r"_worker \(concurrent/futures/")
_INTO_THE_LOOP = "(asyncio/runners.py"


class Frame(NamedTuple):
    """A function, and who it belongs to."""

    name: str
    room: str


@dataclass
class Node:
    """A function that was called in one way, and what it called."""

    frame: Frame
    count: int = 0
    called: dict[Frame, "Node"] = field(default_factory=dict[Frame, "Node"])

    def add(self, frames: Sequence[Frame], count: int) -> None:
        """Adds a stack below this one."""
        self.count += count
        if frames:
            first, *others = frames
            self.called.setdefault(first, Node(first)).add(others, count)

    def depth(self, least: float) -> int:
        """How many rows it takes to draw."""
        return 1 + max((it.depth(least) for it in self.called.values() if it.count >= least), default=0)


def draw(stacks: Stacks, title: str, label: str) -> str:
    """The picture as SVG."""
    root, shares = Node(Frame("everything", "libraries")), Counter[str]()
    for stack, count in stacks.items():
        frames = list(_frames(stack))
        root.add(frames, count)
        shares[next((it.room for it in reversed(frames) if it.room != "libraries"), "libraries")] += count
    least = root.count * LEAST_SHARE
    height = HEAD + (root.depth(least) - 1) * ROW + MARGIN
    light, dark = ({name: colours[at] for name, colours in ROOMS.items()} for at in (0, 1))
    drawing = Drawing(WIDTH, height, light=light, dark=dark)
    drawing.text(MARGIN, 24, title, size=15, bold=True)
    drawing.text(WIDTH - MARGIN, 24, label, size=15, colour="faint", anchor="end")
    _draw_legend(drawing, shares)
    scale = (WIDTH - 2 * MARGIN) / root.count
    _draw_called(drawing, root, MARGIN, HEAD, scale, least, root.count)
    return drawing.render()


def _draw_legend(drawing: Drawing, shares: Counter[str]) -> None:
    """Whose code was running, or had called the library that was."""
    x = MARGIN
    for room, count in shares.most_common():
        if count < shares.total() / 100:
            break
        said = f"{room if room != 'libraries' else 'libraries alone'} {count / shares.total():.0%}"
        drawing.rectangle(x, 40, 12, 12, room)
        drawing.text(x + 16, 50, said, size=SIZE)
        x += 16 + int(len(said) * SIZE * CHARACTER) + 12


def _draw_called(
    drawing: Drawing, node: Node, x: float, y: float, scale: float, least: float, total: int
) -> None:
    for it in sorted(node.called.values(), key=lambda called: -called.count):
        if it.count < least:
            continue
        width = it.count * scale
        tip = f"{it.frame.name}: {it.count / total:.1%}"
        drawing.rectangle(x, y, max(width - 1, 0.5), ROW - 1, it.frame.room, tip=tip)
        if said := fitted(it.frame.name, width - 8, SIZE):
            drawing.text(x + 4, y + ROW - 6, said, size=SIZE)
        _draw_called(drawing, it, x, y + ROW, scale, least, total)
        x += width


def without_waiting(stacks: Stacks) -> Stacks:
    """Drops the threads that wait for work: of those, the innermost function is the one they began with."""
    return Counter({stack: count for stack, count in stacks.items() if not _waits(stack)})


def _waits(stack: tuple[str, ...]) -> bool:
    return len(stack) < 2 or bool(_BEGINS_A_THREAD.match(stack[-2]) or _AWAITS_WORK.match(stack[-1]))


def weighted(stacks: Stacks, thread_cpu: Mapping[int, int]) -> Stacks:
    """Lets the stacks of each thread add up to the processor time that it used, in microseconds."""
    seen = Counter[int]()
    for stack, count in stacks.items():
        seen[_thread(stack)] += count
    return Counter(
        {
            stack: round(count / seen[tid] * thread_cpu.get(tid, 0) / 1000)
            for stack, count in stacks.items()
            for tid in [_thread(stack)]
        }
    )


def _thread(stack: tuple[str, ...]) -> int:
    found = _THREAD.match(stack[0])
    assert found, stack[0]
    return int(found["id"])


def _frames(stack: tuple[str, ...]) -> Iterator[Frame]:
    """The frames that say something, below the thread's name."""
    thread = _THREAD.match(stack[0])
    assert thread
    name = thread["name"] or MAIN_THREAD  # the first one has no name until `threading` is imported
    yield Frame("main thread" if name == MAIN_THREAD else name, "libraries")
    begun = max((at for at, it in enumerate(stack) if _INTO_THE_LOOP in it), default=0)
    told = [it for it in stack[begun + 1 :] if not _PLUMBING.search(it)]
    if begun and not told:
        yield Frame("event loop", "libraries")
    yield from map(_frame, told)


@cache
def _frame(told: str) -> Frame:
    found = _FRAME.match(told)
    assert found, told
    name, file = found["name"].replace(".<locals>", ""), found["file"]
    if not file.startswith("threadkeep/"):
        package = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return Frame(f"{package}: {name}" if name != "<module>" else package, "libraries")
    if name == "<module>":
        return Frame(file.removeprefix("threadkeep/"), _room(file))
    return Frame(name, _room(file))


def _room(file: str) -> str:
    room = file.split("/")[1]
    return room if room in ROOMS else "other"
