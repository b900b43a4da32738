"""What a program has claimed, and the order in which it receives the results.

A claim is known by what it asks for, not by when it comes: its scope, its name, a hash of its arguments, and
how often the run has claimed the same before. Results reach the program one at a time, in the order in which
they were recorded, on the first run as on every later one. A claim without a record is held until every
recorded result was delivered, so code that differs is found before it does anything.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from threadkeep.engine.journal import StepEnded
from threadkeep.wire.claim_keys import describe_key


class Diverged(Exception):
    """The code doesn't do again what is recorded of it."""

    def __init__(self, recorded: str, asked: str, *, may_be_slow: bool = False) -> None:
        super().__init__(f"After what is recorded, {recorded} came next; this run asked for {asked}.")
        self.recorded = recorded
        self.asked = asked
        self.may_be_slow = may_be_slow
        """Whether only the clock says so: the program has asked for nothing else."""


@dataclass(slots=True)
class OpenClaim:
    """A claim whose result the program has not received."""

    id: int
    key: str
    is_cancelled: bool = False
    """Whether the program no longer waits for it."""
    has_ended: bool = False
    """Whether it is recorded what it came to."""

    @property
    def is_given_up(self) -> bool:
        """Whether the program no longer waits for it, and nothing is recorded of it."""
        return self.is_cancelled and not self.has_ended


@dataclass(frozen=True, slots=True)
class Delivery:
    """The next result for the program, and whether other claims are open, which may react to it, too."""

    claim: OpenClaim
    ended: StepEnded
    settles: bool


class Claims:
    """The claims of one run, and the results recorded by earlier runs and this one."""

    def __init__(
        self, recorded: Iterable[StepEnded], optional: Mapping[str, StepEnded], *, began_at: int = 0
    ) -> None:
        self._due = deque(recorded)
        self._left = len(self._due)
        """How many results of earlier runs the program has not received yet."""
        self._optional = optional
        """Results before the last saved point: claimed or not, in any order."""
        self._recorded = {it.key for it in self._due}
        self._counts = Counter[str]()
        self._claimed = 0
        self._last: dict[tuple[str, str, str], int] = {}
        """Which claim was the last one of each scope, name and hash."""
        self._passed: dict[str, int] = {}
        """How many claims had come when the program last saved, by scope: another run may start there."""
        self._open: dict[str, OpenClaim] = {}
        self._by_id: dict[int, OpenClaim] = {}
        self._held: dict[str, None] = {}
        self._is_sent = False
        """Whether the next result is on its way to the program."""
        self._changed = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._delivered_at = began_at
        """When the last delivered result was recorded."""
        self.moves = 0
        """How often something has happened: a claim, a delivery."""
        self._advance()

    @property
    def has_caught_up(self) -> bool:
        """Whether the program has received all that earlier runs recorded."""
        return self._caught_up.is_set()

    @property
    def next_recorded(self) -> str | None:
        """The key of the result that the program should receive next, if there is one."""
        return self._due[0].key if self._due else None

    @property
    def has_sent_all(self) -> bool:
        """The same, or what is left is on its way: what the program does now may follow from that."""
        return self._left <= self._is_sent

    def note_sent(self) -> None:
        """The next result is on its way to the program."""
        self._is_sent = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing is claimed that the program still waits for."""
        return not any(not it.is_cancelled for it in self._open.values())

    def has_claimed(self, key: str) -> bool:
        """Whether this run has asked for it."""
        place, _, number = key.rpartition("/")
        return self._counts[place] >= int(number)

    def pass_saved_point(self, scope: str) -> None:
        """The program has saved a point in a scope that it looks at: another run may start there."""
        self._passed[scope] = self._claimed

    def is_ambiguous(self, scope: str, name: str, hash_: str) -> bool:
        """Whether a run that starts from the scope's saved point would take this claim for an earlier one."""
        last = self._last.get((scope, name, hash_))
        return last is not None and last <= self._passed.get(scope, 0)

    def add(self, id_: int, scope: str, name: str, hash_: str) -> OpenClaim:
        """A new claim, under its key."""
        place = f"{scope}/{name}/{hash_}"
        self._claimed += 1
        self._last[scope, name, hash_] = self._claimed
        self._counts[place] += 1
        claim = OpenClaim(id_, f"{place}/{self._counts[place]}")
        self._open[claim.key] = self._by_id[id_] = claim
        self._note_change()
        return claim

    def optional(self, key: str) -> StepEnded | None:
        """A result from before the last saved point, which is delivered at once."""
        return self._optional.get(key)

    def is_recorded(self, key: str) -> bool:
        """Whether an earlier run recorded a result that is still to be delivered in its turn."""
        return key in self._recorded

    async def hold(self, key: str) -> None:
        """Returns when the program has received all that is recorded: then the claim is new."""
        if self._caught_up.is_set():
            return
        self._held[key] = None
        await self._caught_up.wait()

    def end(self, ended: StepEnded) -> None:
        """Adds a result, in the order in which it is recorded."""
        self._due.append(ended)
        if (claim := self._open.get(ended.key)) is not None:
            claim.has_ended = True
        self._note_change()

    def cancel(self, id_: int) -> OpenClaim | None:
        """The program no longer waits for a claim."""
        claim = self._by_id.get(id_)
        if claim is not None:
            claim.is_cancelled = True
            self._held.pop(claim.key, None)
            self._note_change()
        return claim

    def is_due(self, claim: OpenClaim) -> bool:
        """Whether its result is recorded, and the program has not received it."""
        return any(it.key == claim.key for it in self._due)

    def close(self, claim: OpenClaim) -> None:
        """The program has received a result."""
        self._by_id.pop(claim.id, None)
        self._open.pop(claim.key, None)

    async def next(self) -> Delivery:
        """The next result that the program has claimed; its delivery ends with `delivered`."""
        while True:
            self._changed.clear()
            if self._due and (claim := self._open.get(self._due[0].key)) is not None:
                ended = self._due[0]
                if not claim.is_cancelled and not ended.is_given_up:
                    return Delivery(claim, ended, settles=len(self._open) > 1)
                if claim.is_cancelled:  # the program cancelled it, now as then, or before it came
                    self.delivered(claim)
                    continue
            await self._changed.wait()

    def delivered(self, claim: OpenClaim) -> None:
        """The program has reacted to the next result, or no longer wants it."""
        self._is_sent = False
        self._delivered_at = self._due.popleft().at
        self._left -= self._left > 0
        self.close(claim)
        self._advance()
        self._note_change()

    def check_end(self) -> None:
        """Raises Diverged if the program ends although it has not asked for all that is recorded."""
        for ended in list(self._due)[: self._left]:
            if ended.key not in self._open:
                raise Diverged(describe_key(ended.key), "the end")

    def stuck(self) -> Diverged:
        """The program claims nothing that is recorded next: what that is, and what it claims instead."""
        recorded = describe_key(self._due[0].key)
        # What is held is new; else it waits for something that was recorded later.
        claimed = self._held or [key for key, it in self._open.items() if not it.is_cancelled]
        asked = [f"{it} with other arguments" if it == recorded else it for it in map(describe_key, claimed)]
        return Diverged(recorded, ", ".join(asked) or "nothing", may_be_slow=not self._held)

    def patience_s(self, least: float, most: float) -> float:
        """How long the program may claim nothing that is recorded before it counts as different.

        Between two results it may have waited for something of its own, such as a clock: then it does again.
        """
        waited_s = max(self._due[0].at - self._delivered_at, 0) / 1000 if self._delivered_at else 0.0
        return min(max(2 * waited_s, least), most)

    def _advance(self) -> None:
        if not self._left:
            self._caught_up.set()
            self._held.clear()

    def _note_change(self) -> None:
        self.moves += 1
        self._changed.set()
