"""The flame picture: whose function ran, and who only waited."""

from collections import Counter

from bench.flame_picture import Stacks, draw, weighted, without_waiting

MAIN = "thread (7): MainThread"
LOOP = "Runner.run (asyncio/runners.py:86)"
WRITER = (
    "thread (8): tk-writer",
    "Thread.run (threading.py:971)",
    "_Writer.write_all (threadkeep/storage/a.py:9)",
)
ADD = (MAIN, "serve (threadkeep/cli/serve.py:45)", LOOP, "TurnLog.add (threadkeep/log/writer.py:82)")
COMMIT = (*WRITER, "_Writer._commit (threadkeep/storage/a.py:20)")


def test_picture_names_functions_below_their_thread():
    svg = draw(Counter({ADD: 30, COMMIT: 10}), "A piece's way", "after")
    assert "TurnLog.add: 75.0%" in svg and "log 75%" in svg
    assert "tk-writer" in svg and "storage 25%" in svg
    assert "serve" not in svg, "the way into the loop says nothing"


def test_thread_that_waits_for_work_is_left_out():
    seen: Stacks = Counter({ADD: 1, WRITER: 99})
    assert without_waiting(seen) == Counter({ADD: 1})


def test_stacks_weigh_what_their_thread_used():
    seen: Stacks = Counter({ADD: 10, COMMIT: 990})
    assert weighted(seen, {7: 3_000_000, 8: 1_000_000}) == Counter({ADD: 3_000, COMMIT: 1_000})
