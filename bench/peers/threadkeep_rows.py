"""Threadkeep's own rows for the conversations that the stores are asked to have."""

from collections.abc import Mapping

from bench import floor_postgres, floor_sqlite
from bench.data import Dataset, make_conversation
from bench.sample import READER
from threadkeep.domain.ids import AgentId, ConversationId, new_uuid
from threadkeep.storage.store import sqlite_path


def make_dataset(lengths: Mapping[str, int]) -> tuple[Dataset, Mapping[str, ConversationId]]:
    """Conversations of one user, and the ids that they have."""
    agent = AgentId(new_uuid())
    made = {
        name: make_conversation(READER, agent, length=length, age=number)
        for number, (name, length) in enumerate(lengths.items())
    }
    return Dataset(agent, list(made.values())), {name: it.id for name, it in made.items()}


async def load(url: str, dataset: Dataset) -> None:
    """Fills an empty, migrated database."""
    if url.startswith("sqlite"):
        floor_sqlite.load(sqlite_path(url), dataset)
    else:
        await floor_postgres.load(url, dataset)
