"""What happens in one run: acts of users and faults, drawn from a seed, or written by hand.

A story is a value: it can be printed, shortened, and run again.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

WhenBusy = Literal["reject", "queue", "steer", "stop"]


@dataclass(frozen=True, slots=True)
class Send:
    """A user sends a message; the model or the program does what `wanted` says."""

    at: float
    user: str
    talk: int
    """Which of the user's conversations."""
    wanted: str
    when_busy: WhenBusy = "queue"
    number: int = 0
    """Tells messages apart: it is in their text."""

    @property
    def mark(self) -> str:
        """In the text of the message, and of all that follows from it."""
        return f"{self.user}-{self.number}"


@dataclass(frozen=True, slots=True)
class Stop:
    """A user stops what runs in a conversation."""

    at: float
    user: str
    talk: int


@dataclass(frozen=True, slots=True)
class Again:
    """A user has the latest answer written again, or edits the message before it."""

    at: float
    user: str
    talk: int
    wanted: str
    number: int
    edits: bool = False

    @property
    def mark(self) -> str:
        """Of the edited message."""
        return f"{self.user}-{self.number}"


@dataclass(frozen=True, slots=True)
class Trim:
    """The logs of ended turns go, as they do after a day."""

    at: float


Act = Send | Stop | Again | Trim


@dataclass(frozen=True, slots=True)
class Outage:
    """What is wrong between a node, or all, and the database for a while.

    `refusing`: nothing arrives. `flaky`: some arrive, some don't, some are done and their answers lost.
    """

    at: float
    seconds: float
    node: str
    what: Literal["refusing", "flaky", "slow"]


@dataclass(frozen=True, slots=True)
class AtCommit:
    """What befalls the nth commit of a kind, of a node or of any."""

    commit: str
    """The storage method that makes it, such as `SqlTurnLog.pause`."""
    number: int
    what: Literal[
        "lost before", "lost after", "kill before", "kill after", "stall before", "stall after", "late"
    ]
    node: str = "any"
    seconds: float = 6.0
    """How long the node stands still, or until another takes a killed one's place."""


@dataclass(frozen=True, slots=True)
class NodeFault:
    """What befalls a node: it is killed, stands still, or is replaced by a deploy."""

    at: float
    node: int
    """Which of those that run then."""
    what: Literal["kill", "stall", "deploy"]
    seconds: float = 6.0


Fault = Outage | AtCommit | NodeFault


@dataclass(frozen=True, slots=True)
class Story:
    """A run, from its first act to its last."""

    seed: int
    nodes: int = 2
    agents: Sequence[Literal["model", "code"]] = ("model", "code")
    """What answers in a user's first conversation, and in the next."""
    acts: Sequence[Act] = ()
    faults: Sequence[Fault] = ()
    loses_signals: float = 0.1
    model_fails: float = 0.1
    loses_requests: float = 0.05
    budget: str | None = None
    """What each user may spend a day; None: there is no budget."""
    decides: Literal["soon", "late", "twice", "mixed"] = "mixed"
    drift_s: float = 0.0
    """How far nodes' clocks are apart."""
    named: str = ""

    def without(self, part: "Act | Fault") -> "Story":
        """The story with one thing less."""
        return replace(
            self,
            acts=[it for it in self.acts if it is not part],
            faults=[it for it in self.faults if it is not part],
        )

    def __str__(self) -> str:
        head = f"seed {self.seed}, {self.nodes} nodes{f', {self.named}' if self.named else ''}"
        parts = sorted([*self.acts, *self.faults], key=lambda it: getattr(it, "at", -1.0))
        return "\n".join([head, *(f"    {it}" for it in parts)])


COMMITS = (
    ("SqlTurns.begin", 6),
    ("SqlTurns.end", 8),
    ("SqlTurnLog.pause", 4),
    ("SqlTurnLog._write", 40),
    ("SqlTurnLog.adopt", 3),
    ("SqlTurnLog.release", 3),
    ("SqlApprovals.decide", 4),
    ("SqlQueue.add", 3),
    ("SqlQueue.take_steering", 3),
    ("SqlLedger.reserve", 6),
    ("SqlTurnLog.renew", 20),
)
"""The commits at which nodes are killed, and how many there are of each in a usual story."""

PLANS = {
    "model": (
        "say", "look; say", "note; say", "look+note; say", "mark+note; ask; say", "ask; note; say",
        "note; note; say", "look+ask; say", "quiet",
    ),
    "code": (
        "say", "look; say", "note; say", "note; mark; look", "ask; note; say", "model; note",
        "note; ask; note", "save; model; note", "model+note; ask", "steer; say",
    ),
}  # fmt: skip


def draw(seed: int) -> Story:
    """A story of a few users and a few faults."""
    chance = random.Random(f"story {seed}")
    nodes, users = chance.choice([2, 2, 3, 4]), chance.choice([1, 2, 2, 3])
    length = chance.uniform(10, 25)
    acts = [it for number in range(users) for it in _acts_of(chance, "abc"[number], length)]
    if chance.random() < 0.4:
        acts.append(Trim(chance.uniform(length / 2, length + 5)))
    faults = [_fault(chance, nodes, length) for _ in range(chance.choice([0, 1, 2, 2, 3, 4]))]
    return Story(
        seed=seed,
        nodes=nodes,
        acts=sorted(acts, key=lambda it: it.at),
        faults=faults,
        loses_signals=chance.choice([0.0, 0.1, 0.5, 1.0]),
        model_fails=chance.choice([0.0, 0.1, 0.3]),
        loses_requests=chance.choice([0.0, 0.05, 0.15]),
        budget=chance.choice([None, None, "1000", "0.03"]),
        decides=chance.choice(["soon", "late", "twice", "mixed"]),
        drift_s=chance.choice([0.0, 0.0, 0.5, 4.0]),
    )


def _acts_of(chance: random.Random, user: str, length: float) -> list[Act]:
    acts: list[Act] = []
    busy: list[WhenBusy] = ["reject", "queue", "queue", "steer", "steer", "stop"]
    for number in range(chance.randint(2, 6)):
        talk, at = chance.choice([0, 0, 1]), chance.uniform(0, length)
        plan = chance.choice(PLANS["code" if talk else "model"])
        match chance.random():
            case roll if roll < 0.75 or not number:
                acts.append(Send(at, user, talk, plan, chance.choice(busy), number))
            case roll if roll < 0.87:
                acts.append(Stop(at, user, talk))
            case _:
                acts.append(Again(at, user, talk, plan, number, edits=chance.random() < 0.5))
    return acts


def _fault(chance: random.Random, nodes: int, length: float) -> Fault:
    at, seconds = chance.uniform(0.5, length), chance.choice([1.0, 3.0, 5.0, 7.0, 12.0])
    match chance.random():
        case roll if roll < 0.55:
            commit, most = chance.choice(COMMITS)
            whats = [
                "lost before",
                "lost after",
                "kill before",
                "kill after",
                "stall before",
                "stall after",
                "late",
            ]
            return AtCommit(commit, chance.randint(1, most), chance.choice(whats), seconds=seconds)  # type: ignore[arg-type]
        case roll if roll < 0.75:
            where = chance.choice(["all", *(f"n{it + 1}" for it in range(nodes))])
            return Outage(at, min(seconds, 7.0), where, chance.choice(["refusing", "flaky", "slow"]))
        case _:
            kinds: list[Literal["kill", "stall", "deploy"]] = ["kill", "kill", "stall", "deploy"]
            what = chance.choice(kinds)
            return NodeFault(at, chance.randrange(nodes), what, seconds)
