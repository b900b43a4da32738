"""Stories that reach one moment each, with as few users and faults as that takes."""

from collections.abc import Sequence
from dataclasses import replace

from tests.proof.story import Act, AtCommit, Fault, NodeFault, Send, Story, Trim, WhenBusy


def one_turn(wanted: str, *faults: Fault, talk: int = 0, seed: int = 1, nodes: int = 2) -> Story:
    """One user sends one message; nothing else goes wrong."""
    return talk_of([Send(0.1, "a", talk, wanted, "queue", 0)], *faults, seed=seed, nodes=nodes)


def talk_of(acts: Sequence[Act], *faults: Fault, seed: int = 1, nodes: int = 2) -> Story:
    """These acts and faults, and nothing else."""
    return Story(
        seed=seed,
        nodes=nodes,
        acts=acts,
        faults=faults,
        loses_signals=0.0,
        model_fails=0.0,
        loses_requests=0.0,
        decides="soon",
    )


def stalled_before_a_write(wanted: str, number: int, seconds: float) -> Story:
    """The node stands still while a write of the log is on its way; another takes over meanwhile."""
    return one_turn(wanted, AtCommit("SqlTurnLog._write", number, "stall before", seconds=seconds))


def killed_at(at: float, wanted: str) -> Story:
    """The node is killed at some time of the turn."""
    return one_turn(wanted, NodeFault(at, 0, "kill", 1.0))


def killed_before_a_write(wanted: str, number: int, *, seed: int) -> Story:
    """The node is killed when a write of the log is on its way."""
    return one_turn(wanted, AtCommit("SqlTurnLog._write", number, "kill before"), seed=seed)


def answered_before_the_pause() -> Story:
    """The user answers while the turn is about to wait for that."""
    return one_turn("ask; say", AtCommit("SqlTurnLog.pause", 1, "late", seconds=3.0))


def trimmed_while_it_runs() -> Story:
    """The logs of ended turns go while another turn runs."""
    return talk_of([Send(0.1, "a", 0, "look; note; say", number=0), Trim(1.5)])


def with_budget(story: Story, budget: str) -> Story:
    """The same, for users who may spend only so much."""
    return replace(story, budget=budget)


def two_messages(first: str, second: str, when_busy: WhenBusy = "queue") -> Story:
    """The second message comes while the first is answered."""
    return talk_of([Send(0.1, "a", 0, first, "queue", 0), Send(0.6, "a", 0, second, when_busy, 1)])


def many_at_once(budget: str) -> Story:
    """A user's turns spend at the same time."""
    acts = [Send(0.1 + n / 10, "a", n % 2, "look; look; say", "queue", n) for n in range(8)]
    return replace(talk_of(acts), budget=budget, agents=("model", "model"))
