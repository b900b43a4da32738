"""Who speaks in a turn of an agent in code: one voice at a time, so that no text is mixed with another's.

A model call or a step takes the voice with its first output and keeps it to its end; others' output waits.
What the program itself says takes it only for that moment. Every change of voice is an iteration of its own:
if what spoke is cut off and runs again, only its own text is superseded.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from typing import cast

from threadkeep.domain.events import EventBody, IterationRestart, IterationStart, Text, Thought

PROGRAM = ""
"""The voice of the program itself."""
MOST_SILENCE_S = 60.0
"""How long something keeps the voice without a word while others wait for it."""


class VoiceTaken(Exception):
    """Something could not speak because something else kept the voice and said nothing."""


class Voices:
    """Passes output on, voice by voice."""

    def __init__(
        self,
        emit: Callable[[EventBody], None],
        iteration: int,
        cut_off: Mapping[str, tuple[int, int]],
        speaker: str | None = None,
    ) -> None:
        self._emit = emit
        self._iteration = iteration
        self._cut_off = dict(cut_off)
        """Iteration and first event of what was cut off while it spoke."""
        self._holder: str | None = None
        self._speaker = speaker
        """Whose iteration it is."""
        self._waiting: dict[str, list[EventBody]] = {}
        self._spoken: dict[str, asyncio.Event] = {}
        self._shown_count = 0
        """Counts what was shown."""

    def restart(self, step_id: str) -> None:
        """What a step said before it was cut off no longer counts."""
        if (cut_off := self._cut_off.pop(step_id, None)) is not None:
            iteration, from_seq = cut_off
            self._emit(IterationRestart(iteration, from_seq, step_id))
            self._speaker = None

    def repeat(self, step_id: str) -> None:
        """What a step has said in this run no longer counts: it begins again."""
        if step_id in self._waiting:
            self._waiting[step_id].clear()
        elif self._speaker == step_id:
            self._emit(IterationRestart(self._iteration, step_id=step_id))

    def say(self, step_id: str, body: EventBody) -> None:
        """Shows something, now or when the step that speaks has ended."""
        if self._holder in (None, step_id) and step_id not in self._waiting:
            self._show(step_id, body)
        else:
            self._waiting.setdefault(step_id, []).append(body)

    async def spoken(self, step_id: str) -> None:
        """Returns when all that a step has said is shown; the step is about to end."""
        if step_id not in self._waiting:
            return
        spoken = self._spoken.setdefault(step_id, asyncio.Event())
        while not spoken.is_set():
            heard, holder = self._shown_count, self._holder
            with suppress(TimeoutError):
                async with asyncio.timeout(MOST_SILENCE_S):
                    await spoken.wait()
            if not spoken.is_set() and (heard, holder) == (self._shown_count, self._holder):
                del self._waiting[step_id], self._spoken[step_id]
                raise VoiceTaken(
                    f"Step {step_id} could not speak: step {holder} began to and has said nothing for "
                    f"{MOST_SILENCE_S:g} s. Let only one of them say something, or wait for one first."
                )

    def end(self, step_id: str) -> None:
        """A step or model call has ended; the next one that waits speaks."""
        if self._holder != step_id:
            self._waiting.pop(step_id, None)  # it was cancelled before it could speak
            return
        self._holder = None
        while self._waiting and self._holder is None:
            next_id = next(iter(self._waiting))
            for body in _together(self._waiting.pop(next_id)):
                self._show(next_id, body)
            if (spoken := self._spoken.pop(next_id, None)) is not None:
                spoken.set()
                self._holder = None

    def _show(self, step_id: str, body: EventBody) -> None:
        if self._speaker != step_id:
            self._iteration += 1
            self._speaker = step_id
            self._emit(IterationStart(self._iteration, step_id))
        self._holder = step_id if step_id != PROGRAM else None
        self._shown_count += 1
        self._emit(body)


def _together(bodies: Iterable[EventBody]) -> Iterator[EventBody]:
    """What has waited, with texts that follow each other as one: there may be thousands of small ones."""
    for kind, alike in groupby(bodies, type):
        if kind is Text or kind is Thought:
            texts = cast("Iterable[Text | Thought]", alike)
            yield kind("".join(it.text for it in texts))
        else:
            yield from alike
