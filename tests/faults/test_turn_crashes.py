"""`kill -9` at any moment: what anybody was shown is there, the turn goes on and ends well."""

import asyncio
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tests.faults.killing import LEFT_AT, WHOLE, Left, Moment, Replies, Round, converse, texts
from tests.mcp.running import is_alive, until_none
from tests.serving import Server
from threadkeep.testing import ScriptedModel
from threadkeep.testing.waiting import PATIENCE_S

# Ten kills for each of five seeds.
SEEDS = (20260107,)
KILLS = [
    Moment.UNREAD,
    *[Moment.ASKED] * 2,
    Moment.BEGUN,
    *[Moment.TALKING] * 2,
    *[Moment.IN_TOOL] * 2,
    Moment.ALL_SAID,
    Moment.DONE,
]
# Turns in other conversations meanwhile, which the kill meets wherever they are.
OTHERS = [Moment.TALKING, Moment.ALL_SAID]


@pytest.mark.requirement("004-R2.3", "004-NFR-reliability-1")
@pytest.mark.parametrize("seed", SEEDS)
async def test_server_is_killed_ten_times(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    left: list[Left] = []
    rounds: list[Round] = []
    conversations: list[str] = []
    noted, journal = tmp_path / "noted", tmp_path / "data" / "threadkeep.db-wal"
    noted.mkdir()
    pids_file = noted / "pids"
    replies = Replies()
    with ScriptedModel(otherwise=replies) as model:
        settings = {
            "gateway": "openai",
            "gateway_url": model.url,
            "gateway_api_key": "sk-scripted",
            "model": "scripted",
            "secret_key": "a-key-for-tests-that-is-long-enough",
            "mcp_allowed_commands": "python",
            "mcp_writable": str(noted),
        }
        for number, moment in enumerate(chance.sample(KILLS, len(KILLS))):
            with Server(tmp_path, **settings) as server:
                async with server.async_client() as client:
                    left += await check(client, rounds)
                    if not conversations:
                        conversations = [await converse(client) for _ in range(3)]
                        conversations.append(await converse(client, pids_file))
                    *plain, tooled = conversations
                    aimed = [tooled] if moment is Moment.IN_TOOL else []
                    rounds = [
                        Round(number, conversation, it, chance, journal)
                        for conversation, it in zip([*aimed, *plain], [moment, *OTHERS], strict=False)
                    ]
                    await kill(server, client, model, rounds)
                    replies.killed(number)
        with Server(tmp_path, **settings) as server:
            async with server.async_client() as client:
                left += await check(client, rounds)
                for conversation in conversations:
                    last = Round(len(KILLS), conversation, Moment.DONE, chance)
                    await last.ask(client)
                    assert texts(last.shown) == WHOLE
        assert not model.refused
    assert len(left) == len(KILLS)
    assert set(left) == set(Left), "the kills are not spread over the life of a turn"
    pids = [int(line) for line in pids_file.read_text().split()]
    await until_none(lambda: [pid for pid in pids if is_alive(pid)])


async def kill(
    server: Server, client: httpx.AsyncClient, model: ScriptedModel, rounds: Sequence[Round]
) -> None:
    """Asks all at once, and kills the server at the moment of the first."""
    aimed = rounds[0]
    if aimed.moment is Moment.UNREAD:
        server.process.send_signal(signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as asking:
        for it in rounds:
            asking.create_task(it.ask(client))
        while not aimed.is_reached(model):  # noqa: ASYNC110  (seen by us, by the model or in a file)
            await asyncio.sleep(0.0005)
        server.kill()


async def check(client: httpx.AsyncClient, rounds: Sequence[Round]) -> list[Left]:
    """Whether all is as it must be after a kill, and what it left of the turn that it was aimed at."""
    left = [await it.check(client) for it in rounds]
    assert not rounds or left[0] in LEFT_AT[rounds[0].moment], (left, rounds[0].question)
    return left[:1]
