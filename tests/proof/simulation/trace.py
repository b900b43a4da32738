"""What happened, in order: the story that a failure tells, and the hash by which two runs are compared."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened."""

    at: float
    where: str
    what: str
    about: str
    """Ids and texts by which it is found."""

    def __str__(self) -> str:
        return f"{self.at:9.3f}  {self.where:<6} {self.what}  {self.about}".rstrip()


class Trace:
    """All that happened in one run."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.all: list[Happened] = []
        self.counts = Counter[str]()
        """How often each named interleaving and each fault came about."""

    def add(self, where: str, what: str, about: str = "") -> None:
        """Notes that something happened now."""
        self.all.append(Happened(self._now(), where, what, about))

    def count(self, name: str) -> None:
        """Counts an interleaving."""
        self.counts[name] += 1

    @property
    def hash(self) -> str:
        """The same for runs in which the same happened at the same times."""
        told = "\n".join(map(str, self.all))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def about(self, names: Iterable[str]) -> list[Happened]:
        """What happened that has to do with one of these, and all faults."""
        names = [it for it in names if it]
        return [it for it in self.all if it.what.startswith("FAULT") or any(n in it.about for n in names)]
