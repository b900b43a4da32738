"""Threadkeep's store on SQLite, called as its services call it, with the domain's own rules.

Best case: the conversation's state is kept between turns, as a node keeps it while a turn runs. The question
and an empty reply are one commit, the reply with its text and the turn's end another.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers.contender import StoreContender


class Threadkeep(StoreContender):
    """This repository's store."""

    title = "Threadkeep"
    packages = ("threadkeep",)

    async def open(self, place: str) -> None:
        from threadkeep.storage.store import open_store

        self._url = f"sqlite:///{Path(place, 'threadkeep.db')}"
        await (await open_store(self._url)).close()

    async def fill(self, lengths: Mapping[str, int]) -> None:
        from bench.ours import Threadkeep as Ours
        from bench.peers.threadkeep_rows import load, make_dataset
        from bench.sample import READER
        from threadkeep.storage.store import open_store

        self._reader = READER
        dataset, self._ids = make_dataset(lengths)
        await load(self._url, dataset)
        self._ours = Ours(await open_store(self._url), dataset)

    async def append(self, conversation_id: str) -> None:
        await self._ours.append(self._ids[conversation_id])

    async def latest(self, conversation_id: str, limit: int) -> Sequence[object]:
        return await self._ours.latest(self._ids[conversation_id], limit)

    async def list_conversations(self, limit: int) -> Sequence[object]:
        return await self._ours.conversations(self._reader, limit)

    async def close(self) -> None:
        await self._ours.close()


CONTENDER = Threadkeep
