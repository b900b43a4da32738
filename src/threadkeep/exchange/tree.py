"""Branching conversations: a question was edited, or a reply regenerated.

Other products store each step of a reply as its own node; ours is one message with parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_BRANCHES = 200


class NotATree(ValueError):
    """The messages of a conversation don't form a tree; the error's text is for people."""


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """A question, or a reply with all its steps; its last node's id identifies it."""

    nodes: Sequence[str]
    follows: str | None
    is_question: bool

    @property
    def id(self) -> str:
        """Its id."""
        return self.nodes[-1]


@dataclass(frozen=True, slots=True)
class Tree:
    """All questions and replies, each after the one it follows, and the last that was shown."""

    said: Sequence[ForeignEntry] = ()
    last: str | None = None
    left_over: int = 0
    """How many branches exceeded the limit."""


def read_tree(
    parents: Mapping[str, str | None], current: str | None, is_question: Callable[[str], bool]
) -> Tree:
    """The tree of these nodes. A missing parent counts as none.

    `parents` lists nodes from oldest to newest: without a current node, the last one is current.
    """
    _check(parents)
    has_children = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in has_children]
    if not leaves:
        return Tree()
    shown = _leaf_below(parents, current) if current in parents else leaves[-1]
    kept = [shown, *(leaf for leaf in leaves if leaf != shown)][:MOST_BRANCHES]
    said: dict[str, ForeignEntry] = {}
    for leaf in kept:
        for it in _steps(_path(parents, leaf), is_question):
            said.setdefault(it.id, it)
    return Tree(_in_order(said, parents), shown, len(leaves) - len(kept))


def _steps(path: Iterable[str], is_question: Callable[[str], bool]) -> Iterator[ForeignEntry]:
    """The questions on a path, and the replies between them."""
    follows: str | None = None
    reply: list[str] = []
    for id_ in path:
        if not is_question(id_):
            reply.append(id_)
            continue
        if reply:
            yield ForeignEntry(reply, follows, is_question=False)
            follows, reply = reply[-1], []
        yield ForeignEntry([id_], follows, is_question=True)
        follows = id_
    if reply:
        yield ForeignEntry(reply, follows, is_question=False)


def _in_order(said: Mapping[str, ForeignEntry], nodes: Iterable[str]) -> list[ForeignEntry]:
    """From oldest to newest, but each after what it follows, whatever its time."""
    ages = {id_: age for age, id_ in enumerate(nodes)}
    places: dict[str | None, int] = {None: 0}
    for it in said.values():  # each comes after what it follows
        places[it.id] = max(ages[it.nodes[0]], places[it.follows])
    return sorted(said.values(), key=lambda it: places[it.id])


def _leaf_below(parents: Mapping[str, str | None], id_: str | None) -> str:
    """The end of the branch through a node, taking the newest child at each step."""
    newest = {parent: child for child, parent in parents.items()}
    while id_ in newest:
        id_ = newest[id_]
    assert id_ is not None
    return id_


def _check(parents: Mapping[str, str | None]) -> None:
    """Refuses cycles: walking up from any message must reach a first one."""
    safe: set[str] = set()
    for id_ in parents:
        walked: dict[str, None] = {}
        at: str | None = id_
        while at is not None and at in parents and at not in safe:
            if at in walked:
                raise NotATree(f"its messages form a cycle at {at!r}")
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
