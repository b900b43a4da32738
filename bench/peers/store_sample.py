"""Which conversations every store is filled with, and what it is then asked to do."""

from collections.abc import Sequence

EMPTY = 120
"""An empty conversation is appended to once, hence the many."""
COPIES = {500: 4, 5_000: 2, 50_000: 1}
"""By length: conversations that get turns, so many that none grows noticeably."""
CONVERSATIONS = 1_000
WRITERS = 32

LATEST, LISTED, TOGETHER = "latest 20 of 5,000", "list 20 of 1,000", "32 writers"
READ = "read 5000"
APPENDS = {f"append to {length:,}": length for length in (0, *COPIES)}


def ids_of(operation: str) -> Sequence[str]:
    """The conversations that an append goes to."""
    length = APPENDS[operation]
    return [f"{length}-{number}" for number in range(COPIES.get(length, EMPTY))]


def writers() -> Sequence[str]:
    """Those of the writers that append at the same time."""
    return [f"writer-{number}" for number in range(WRITERS)]


def lengths(*, lists: bool) -> dict[str, int]:
    """Every conversation and its number of messages; the many of a long list only for whoever lists."""
    made = {id_: length for operation, length in APPENDS.items() for id_ in ids_of(operation)}
    made |= {READ: 5_000} | dict.fromkeys(writers(), 0)
    if lists:
        made |= {f"listed-{number}": 2 for number in range(CONVERSATIONS - len(made))}
    return made
