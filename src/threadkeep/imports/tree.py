"""Branching conversations: a question was edited, or a reply regenerated.

Other products store each step of a reply as its own node; ours is one message with parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_BRANCHES = 200
MOST_STEPS = 200_000
"""Nodes of a conversation and blocks in them; what branches share counts for each."""


class NotATree(ValueError):
    """The messages of a conversation don't form a tree; the error's text is for people."""


class TooManySteps(ValueError):
    """A conversation has more nodes and blocks than we read; the error's text is for people."""


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
    parents: Mapping[str, str | None],
    current: str | None,
    is_question: Callable[[str], bool],
    blocks: Callable[[str], int] = lambda _: 0,
) -> Tree:
    """The tree of these nodes, each with so many blocks. A missing parent counts as none.

    `parents` lists nodes from oldest to newest: without a current node, the last one is current.
    """
    if len(parents) + sum(map(blocks, parents)) > MOST_STEPS:
        raise TooManySteps(f"it has more than {MOST_STEPS:,} steps")
    _check(parents)
    has_children = set(parents.values())
    leaves = [id_ for id_ in parents if id_ not in has_children]
    if not leaves:
        return Tree()
    shown = _leaf_below(parents, current) if current in parents else leaves[-1]
    kept = [shown, *(leaf for leaf in leaves if leaf != shown)][:MOST_BRANCHES]
    said: dict[str, ForeignEntry] = {}
    left_over, room = len(leaves) - len(kept), MOST_STEPS
    for leaf in kept:
        path, known = _path(parents, leaf, said, is_question, most=room)
        new = [it for it in _steps(path, known, is_question) if it.id not in said]
        size = sum(1 + blocks(id_) for it in new for id_ in it.nodes)
        if len(path) > room or size > room:
            left_over += 1
            continue
        room -= size
        said |= {it.id: it for it in new}
    return Tree(_in_order(said, parents), shown, left_over)


def _path(
    parents: Mapping[str, str | None],
    leaf: str,
    said: Mapping[str, ForeignEntry],
    is_question: Callable[[str], bool],
    *,
    most: int,
) -> tuple[list[str], str | None]:
    """The nodes down to a leaf, and what of the entries known so far they follow; not many above `most`."""
    path: list[str] = []
    at: str | None = leaf
    while at is not None and at in parents and len(path) <= most:
        # The steps of a reply before a branch belong to each of its branches: only an entry's end is known.
        if at in said and (said[at].is_question or is_question(path[-1])):
            return path[::-1], at
        path.append(at)
        at = parents[at]
    return path[::-1], None


def _steps(
    path: Iterable[str], follows: str | None, is_question: Callable[[str], bool]
) -> Iterator[ForeignEntry]:
    """The questions on a path, and the replies between them."""
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
