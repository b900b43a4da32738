"""Conversations that branch: where a question was edited, or an answer regenerated.

An answer that was regenerated is a version of the answer. A question that was put differently begins a
branch, which has a whole conversation of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_BRANCHES = 200
NO_QUESTION = ""


class NoTree(ValueError):
    """The messages of a conversation do not form a tree; the message is for people."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A way from the first message to a last one, and other answers to the questions on it.

    `others` has, by question, the messages after it of each answer that does not count.
    """

    path: Sequence[str]
    others: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict[str, Sequence[Sequence[str]]])


def branches(
    parents: Mapping[str, str | None], current: str | None, is_question: Callable[[str], bool]
) -> tuple[Sequence[Branch], int]:
    """All branches, the current one first, and how many were too many. Parents that are missing are none.

    `parents` has its messages from the oldest to the newest: where no current one is told, it is the last.
    """
    _check(parents)
    has_children = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in has_children]
    if not leaves:
        return (), 0
    if current is None or current not in parents:
        current = leaves[-1]
    others = [leaf for leaf in leaves if leaf != current][: MOST_BRANCHES - 1]
    left_over = len(leaves) - len(others) - (current in leaves)
    paths = [
        _path(parents, current),
        *sorted((_path(parents, leaf) for leaf in others), key=len, reverse=True),
    ]
    made: list[tuple[Sequence[str], dict[str, list[Sequence[str]]]]] = []
    home: dict[str, int] = {}  # in which of those made a question stands
    for path in paths:
        questions = [id_ for id_ in path if is_question(id_)]
        last = questions[-1] if questions else NO_QUESTION
        if last in home:
            answer = path[path.index(last) + 1 :] if questions else path
            made[home[last]][1].setdefault(last, []).append(answer)
        else:
            for question in questions or (NO_QUESTION,):
                home.setdefault(question, len(made))
            made.append((path, {}))
    return [Branch(path, others) for path, others in made], left_over


def exchanges(
    branch: Branch, is_question: Callable[[str], bool]
) -> Iterator[tuple[str | None, Sequence[Sequence[str]]]]:
    """The questions of a branch, each with its answers, of which the last one counts; each may be empty."""
    asked: str | None = None
    answer: list[str] = []
    for id_ in branch.path:
        if is_question(id_):
            yield asked, [*branch.others.get(asked or NO_QUESTION, ()), answer]
            asked, answer = id_, []
        else:
            answer.append(id_)
    yield asked, [*branch.others.get(asked or NO_QUESTION, ()), answer]


def _check(parents: Mapping[str, str | None]) -> None:
    """Whoever goes up from any message must arrive at a first one."""
    safe: set[str] = set()
    for id_ in parents:
        walked: dict[str, None] = {}
        at: str | None = id_
        while at is not None and at in parents and at not in safe:
            if at in walked:
                raise NoTree(f"its messages form a circle at {at!r}")
            walked[at] = None
            at = parents[at]
        safe.update(walked)


def _path(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    path: list[str] = []
    at: str | None = leaf
    while at is not None and at in parents:
        path.append(at)
        at = parents[at]
    return path[::-1]
