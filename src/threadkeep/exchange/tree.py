"""Conversations that branch: where a question was edited, or an answer regenerated.

Other products keep each step of an answer as a node of its own; ours is one message with parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_BRANCHES = 200


class NoTree(ValueError):
    """The messages of a conversation do not form a tree; the message is for people."""


@dataclass(frozen=True, slots=True)
class Said:
    """A question, or an answer with all its steps; its last node names it."""

    nodes: Sequence[str]
    follows: str | None
    is_question: bool

    @property
    def id(self) -> str:
        """Its name."""
        return self.nodes[-1]


@dataclass(frozen=True, slots=True)
class Tree:
    """All that was said, each after what it follows, and the last of what was shown."""

    said: Sequence[Said] = ()
    last: str | None = None
    left_over: int = 0
    """How many branches were too many."""


def read_tree(
    parents: Mapping[str, str | None], current: str | None, is_question: Callable[[str], bool]
) -> Tree:
    """The tree of these nodes. Parents that are missing are none.

    `parents` has its nodes from the oldest to the newest: without a current node, the last one is current.
    """
    _check(parents)
    has_children = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in has_children]
    if not leaves:
        return Tree()
    shown = _leaf_below(parents, current) if current in parents else leaves[-1]
    kept = [shown, *(leaf for leaf in leaves if leaf != shown)][:MOST_BRANCHES]
    said: dict[str, Said] = {}
    for leaf in kept:
        for it in _steps(_path(parents, leaf), is_question):
            said.setdefault(it.id, it)
    return Tree(_in_order(said, parents), shown, len(leaves) - len(kept))


def _steps(path: Iterable[str], is_question: Callable[[str], bool]) -> Iterator[Said]:
    """What was said on a path: questions, and between them answers."""
    follows: str | None = None
    answer: list[str] = []
    for id_ in path:
        if not is_question(id_):
            answer.append(id_)
            continue
        if answer:
            yield Said(answer, follows, is_question=False)
            follows, answer = answer[-1], []
        yield Said([id_], follows, is_question=True)
        follows = id_
    if answer:
        yield Said(answer, follows, is_question=False)


def _in_order(said: Mapping[str, Said], nodes: Iterable[str]) -> list[Said]:
    """From the oldest to the newest, but nothing before what it follows, whatever its time says."""
    ages = {id_: age for age, id_ in enumerate(nodes)}
    places: dict[str | None, int] = {None: 0}
    for it in said.values():  # whatever something follows is there before it
        places[it.id] = max(ages[it.nodes[0]], places[it.follows])
    return sorted(said.values(), key=lambda it: places[it.id])


def _leaf_below(parents: Mapping[str, str | None], id_: str | None) -> str:
    """The end of the branch through a node, along the newest child at each step."""
    newest = {parent: child for child, parent in parents.items()}
    while id_ in newest:
        id_ = newest[id_]
    assert id_ is not None
    return id_


def _check(parents: Mapping[str, str | None]) -> None:
    """Whoever goes up from any message must arrive at a first one."""
    safe: set[str] = set()
    for id_ in parents:
        walked: dict[str, None] = {}
        at: str | None = id_
        while at is not None and at in parents and at not in safe:
            if at in walked:
                raise NoTree(f"its messages form a cycle at {at!r}")
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
