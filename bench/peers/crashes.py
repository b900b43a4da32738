"""What `kill -9` in the middle of a turn leaves, by the server's own history after a restart."""

import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.peers.contender import Pace, Said, ServerContender
from bench.peers.results import Result
from bench.peers.serving import READY_S, Server, serve

LONG = Pace(280, 20)
KILLED_AFTER_S = 12
"""Long enough for whoever writes only every ten seconds."""
WAITED_S = 30
"""For a turn to go on by itself after the restart: more than the whole reply takes."""

_PIECE = re.compile(r"\d+\.\d{6}")


def measure_crashes(
    contenders: Mapping[str, ServerContender], results: Mapping[str, Result], url: str, folder: Path
) -> None:
    """All contenders at the same time: nothing here is about speed."""

    def crash(name: str) -> None:
        try:
            with serve(contenders[name], folder / f"{name}-crash", url) as server:
                results[name].survives = _crash(server)
        except (RuntimeError, OSError) as error:
            results[name].fail("kill -9", error)

    keeping = [name for name, contender in contenders.items() if contender.keeps]
    with ThreadPoolExecutor(max(1, len(keeping))) as threads:
        list(threads.map(crash, keeping))


def _crash(server: Server) -> dict[str, bool | int]:
    (conversation,) = server.converse(1, with_turn=True)
    reader = server.reader()
    (turn,) = reader.begin([conversation], LONG)
    reader.read_for(KILLED_AFTER_S)
    server.kill()
    reader.close()
    server.restart()
    seen = len(turn.sent_at)
    said = _history(server, conversation.id)
    first = _reply(said)
    until = time.monotonic() + WAITED_S
    while _reply(said) <= seen and time.monotonic() < until:
        time.sleep(1)
        said = _history(server, conversation.id)
    return {
        "earlier turn": len(said) >= 2,
        "question": any(it.by_user and it.text == LONG.question for it in said),
        "pieces shown": seen,
        "pieces kept": first,
        "went on": _reply(said) > seen,
    }


def _reply(said: list[Said]) -> int:
    """How many pieces the reply to the long question has."""
    asked = [number for number, it in enumerate(said) if it.by_user and it.text == LONG.question]
    if not asked:
        return 0
    return sum(len(_PIECE.findall(it.text)) for it in said[asked[-1] + 1 :] if not it.by_user)


def _history(server: Server, conversation_id: str) -> list[Said]:
    """What the server says, once it has started up; nothing where it has forgotten the conversation."""
    until = time.monotonic() + READY_S
    while True:
        try:
            return list(server.contender.history(server.api, conversation_id))
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        except RuntimeError as error:
            if ": 404 " in str(error):
                return []
            raise
