"""Reports keep nobody busy: twice the text is twice the work, and nobody waits for a user's reports."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.hostile.work import counted
from tests.making import ALICE, BOB
from threadkeep.http.reports import markdown_html as module
from threadkeep.http.reports.markdown_html import markdown_html
from threadkeep.services.reports import SLICE_PIECES, WRITTEN_AT_ONCE, ReportWriters
from threadkeep.testing import until

MOST_GROWTH = 2.4
CHARACTERS = 2_000


def _footnotes(length: int) -> str:
    names = range(length // 20)
    return "".join(f"[^{it}]: x\n" for it in names) + "".join(f"[^{it}]" for it in names)


HOSTILE: dict[str, Callable[[int], str]] = {
    "footnotes": _footnotes,
    "footnotes in reverse": lambda n: "\n".join(reversed(_footnotes(n).split("\n"))),
    "one footnote": lambda n: "[^a]: x\n" + "[^a]" * (n // 4),
    "footnotes of footnotes": lambda n: "".join(f"[^{it}]: [^0][^1]\n" for it in range(n // 16)),
    "references that don't end": lambda n: "[^a]: x\n\n" + "[^" * (n // 2),
    "tasks": lambda n: "- [ ] a\n" * (n // 8),
    "brackets": lambda n: "[" * n,
    "images": lambda n: "![" * (n // 2),
    "links": lambda n: "[a](" * (n // 4),
    "emphasis": lambda n: "*_" * (n // 2),
    "formulas": lambda n: "\\(a\\[$" * (n // 6),
    "formulas that don't end": lambda n: "$$a\n# b\n\\[c\n" * (n // 13),
    "quotes": lambda n: "> " * 20 + "a\n" * (n // 2),
    "lists": lambda n: "- a\n* b\n" * (n // 8),
    "table": lambda n: "|a|b|\n|-|-|\n" + "|a|b|\n" * (n // 6),
    "headings": lambda n: "# a\n" * (n // 4),
}


def _work_on(text: str) -> int:
    with counted(lines=True) as work:
        markdown_html(text)
    return work.lines  # `test_patterns` has what our patterns do


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_markdown_is_twice_the_work_at_most(name: str):
    markdown_html("")  # loads the parser
    once, twice = (_work_on(HOSTILE[name](length)) for length in (CHARACTERS, 2 * CHARACTERS))
    assert twice <= MOST_GROWTH * once, f"{once}, then {twice}"


def test_references_to_many_footnotes_are_looked_up(monkeypatch: pytest.MonkeyPatch):
    """A search through a list takes no steps of ours."""
    compared = 0

    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return super().__hash__()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

    split = module._footnotes  # pyright: ignore[reportPrivateUsage]

    def named(text: str) -> tuple[str, dict[str, str]]:
        kept, notes = split(text)
        return kept, {Name(name): note for name, note in notes.items()}

    monkeypatch.setattr(module, "_footnotes", named)
    markdown_html(_footnotes(8_000))
    assert compared <= 3 * 400


async def test_reports_of_one_user_keep_neither_threads_nor_another_users_report():
    writers, stopped = ReportWriters(), threading.Event()

    def endless() -> Iterator[str]:
        while not stopped.is_set():
            yield "x"

    async def read() -> None:
        async for _ in writers.slices(ALICE, endless()):
            pass

    readers = [asyncio.create_task(read()) for _ in range(4 * WRITTEN_AT_ONCE)]
    await asyncio.sleep(0)
    found = [it async for some in writers.slices(BOB, iter(["a", "b"])) for it in some]
    assert found == ["a", "b"]
    assert await asyncio.to_thread(lambda: "free") == "free"
    assert all(not it.done() for it in readers)
    stopped.set()
    await asyncio.gather(*readers)


async def test_report_whose_reader_has_left_is_written_no_further():
    writers = ReportWriters()
    made = 0

    def pieces() -> Iterator[str]:
        nonlocal made
        while True:
            made += 1
            yield "x"

    async def read() -> None:
        async for _ in writers.slices(ALICE, pieces()):
            await asyncio.sleep(0)

    reader = asyncio.create_task(read())
    await until(lambda: made > 0)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    before = made
    await asyncio.to_thread(writers._threads.shutdown)  # pyright: ignore[reportPrivateUsage]
    assert made <= before + SLICE_PIECES
