"""Where a graph stands: its checkpoints, in the journal of the turn."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt

from threadkeep.agents.langgraph.bridge import wait_for
from threadkeep.agents.media import Media, Piece
from threadkeep.agents.turn import Turn, in_step

INTERRUPT = "__interrupt__"
"""The channel in which LangGraph writes what a task asks for."""
_EMPTY = "empty"
_TASK = ":"
"""Stands between a node and a task's id in a namespace; without one, a subgraph's state outlives the task."""

Typed = tuple[str, bytes]


class ListedTypes(JsonPlusSerializer):
    """Builds messages, plain values and the classes that were listed; nothing else, whatever bytes say."""

    def __init__(self, listed: Sequence[type] = ()) -> None:
        super().__init__(
            pickle_fallback=False, allowed_json_modules=None, allowed_msgpack_modules=listed or None
        )

    def loads_typed(self, data: Typed) -> Any:
        """A value from its bytes; only in the format that this class writes."""
        if data[0] not in ("null", "bytes", "bytearray", "msgpack"):
            raise ValueError(f"A checkpoint is not stored as {data[0]!r}.")
        return super().loads_typed(data)


class Stored(msgspec.Struct):
    """The last checkpoint of one namespace, with what its tasks have written since."""

    id: str
    checkpoint: Typed
    metadata: Typed
    parent: str | None
    values: dict[str, tuple[str | int | float, str, bytes]] = {}
    """By channel: the version, and the value."""
    writes: dict[str, dict[str, tuple[str, str, bytes, str]]] = {}
    """By task and place: the channel, the value, and the task's path."""


class AskedInTool(msgspec.Struct):
    """The ids of interrupts, and how often the graph had been answered before."""

    ids: list[str]
    round: int


class Snapshot(msgspec.Struct):
    """Where a graph stands, and what it was answered last."""

    spaces: dict[str, Stored] = {}
    round: int = 0
    """How often the graph has been answered."""
    is_running: bool = False
    """Whether it has neither ended nor stopped to ask."""
    answers: Typed | None = None
    """What it was answered last, by the ids of its interrupts."""
    said: list[str] = []
    """The ids of the messages whose text is shown."""
    approvals: list[str] = []
    """The calls that the graph wants approved."""
    in_tools: dict[str, AskedInTool] = {}
    """By the call of a tool, what it asks, or a graph that it runs."""
    told_around: str | None = None
    """Where a model was called around the record, if the user was told."""


class InterruptedTool(msgspec.Struct):
    """What a tool asks, and where the graphs stand that it runs."""

    interrupts: Typed
    spaces: dict[str, Stored]


class JournalSaver(BaseCheckpointSaver[str]):
    """Keeps a graph's last checkpoints, and saves them in the turn's journal."""

    def __init__(self, turn: Turn, listed: Sequence[type] = ()) -> None:
        self.types = ListedTypes(listed)
        super().__init__(serde=self.types)
        self.now = Snapshot()
        self.media = Media(turn)
        """The files in the messages, which are saved once."""
        self.until_recorded: Callable[[Callable[[str], bool]], Awaitable[None]] = _at_once
        """Waits for what tasks, by their namespaces, show beside their work."""
        self._asked: dict[str, tuple[str, list[str]]] = {}
        """By the call of a tool, where it is and the ids of its interrupts, until they are saved."""
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._saving = asyncio.Lock()
        self._changes = 0
        self._saved = 0

    # The journal

    async def restore(self, kept: Sequence[Piece]) -> None:
        """Continues where a snapshot was taken."""
        self.now = msgspec.msgpack.decode(await self.media.whole_bytes(kept), type=Snapshot)

    async def save(self) -> None:
        """Saves where the graph stands now; what a tool's graph does is saved when the tool is recorded."""
        self._changes += 1
        if in_step():
            return
        wanted = self._changes
        async with self._saving:
            if self._saved < wanted:  # else one that came later has saved this, too
                self._saved = self._changes
                await self._turn.save(self.media.cut_bytes(msgspec.msgpack.encode(self.now)))

    def for_next_turn(self) -> Sequence[Piece]:
        """What the next turn of the branch continues with: finished tasks are forgotten."""
        spaces = {ns: it for ns, it in self.now.spaces.items() if _TASK not in ns}
        return self.media.cut_bytes(msgspec.msgpack.encode(Snapshot(spaces)))

    def pending(self) -> set[str]:
        """The ids of the interrupts that tasks have written."""
        return {
            interrupt.id
            for stored in self.now.spaces.values()
            for writes in stored.writes.values()
            for channel, kind, value, _ in writes.values()
            if channel == INTERRUPT
            for interrupt in cast("Sequence[Interrupt]", self.types.loads_typed((kind, value)))
        }

    # What tools ask

    def asked_in(self, call: str, namespace: str, interrupts: Sequence[Interrupt]) -> bytes:
        """What is recorded with the call of a tool that asks, or that runs a graph which does."""
        self._asked[call] = namespace, [it.id for it in interrupts]
        inside = {
            ns: it for ns, it in self.now.spaces.items() if ns == namespace or ns.startswith(f"{namespace}|")
        }
        return msgspec.msgpack.encode(InterruptedTool(self.types.dumps_typed([*interrupts]), inside))

    def ask_again(self, call: str, namespace: str, recorded: bytes) -> Sequence[Interrupt]:
        """What a tool has asked, if it was not answered yet: the graph was cut off meanwhile."""
        asked = msgspec.msgpack.decode(recorded, type=InterruptedTool)
        interrupts: Sequence[Interrupt] = self.types.loads_typed(asked.interrupts)
        if (saved := self.now.in_tools.get(call)) is None:
            self._asked[call] = namespace, [it.id for it in interrupts]
            self.now.spaces.update(asked.spaces)
        return () if saved is not None and saved.round < self.now.round else interrupts

    def _note_asked(self, task_id: str) -> None:
        """What a task asks is about to be saved."""
        for call, (namespace, ids) in tuple(self._asked.items()):
            if namespace.endswith(f"{_TASK}{task_id}"):
                self.now.in_tools[call] = AskedInTool(ids, self.now.round)
                del self._asked[call]

    # What LangGraph stores

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keeps a checkpoint as its namespace's last, and saves it."""
        namespace = _namespace(config)
        put = self._put(config, checkpoint, metadata, new_versions)
        if not in_step():
            await self.until_recorded(lambda it: not namespace or it.startswith(f"{namespace}|"))
        await self.save()
        return put

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """The same, for a graph that a function calls which isn't `async`."""
        put = self._put(config, checkpoint, metadata, new_versions)
        self._save_in_thread()
        return put

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        namespace = _namespace(config)
        before = self.now.spaces.get(namespace)
        values = dict(before.values) if before is not None else {}
        given = checkpoint["channel_values"]
        for channel, version in new_versions.items():
            kind, value = self.types.dumps_typed(given[channel]) if channel in given else (_EMPTY, b"")
            values[channel] = (version, kind, value)
        kept = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        self.now.spaces[namespace] = Stored(
            id=checkpoint["id"],
            checkpoint=self.types.dumps_typed(kept),
            metadata=self.types.dumps_typed(get_checkpoint_metadata(config, metadata)),
            parent=config.get("configurable", {}).get("checkpoint_id"),
            values=values,
        )
        self._forget_tasks_of(namespace)
        return _config(config, namespace, checkpoint["id"])

    def _forget_tasks_of(self, namespace: str) -> None:
        """A graph's new checkpoint comes when its tasks have ended: their subgraphs' are of no more use."""
        inside = f"{namespace}|" if namespace else ""
        for other in tuple(self.now.spaces):
            if other != namespace and other.startswith(inside) and _TASK in other[len(inside) :]:
                del self.now.spaces[other]

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keeps what a task has written, and saves it."""
        if self._put_writes(config, writes, task_id, task_path):
            if not in_step():
                await self.until_recorded(lambda it: f"{_TASK}{task_id}" in it)
            await self.save()

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """The same, for a graph that a function calls which isn't `async`."""
        if self._put_writes(config, writes, task_id, task_path):
            self._save_in_thread()

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> bool:
        stored = self.now.spaces.get(_namespace(config))
        if stored is None or stored.id != get_checkpoint_id(config):
            return False
        if any(channel == INTERRUPT for channel, _ in writes):
            self._note_asked(task_id)
        written = stored.writes.setdefault(task_id, {})
        for index, (channel, value) in enumerate(writes):
            place = WRITES_IDX_MAP.get(channel, index)
            if place < 0 or str(place) not in written:
                written[str(place)] = (channel, *self.types.dumps_typed(value), task_path)
        return True

    # What LangGraph reads

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The last checkpoint of a namespace."""
        return self.get_tuple(config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The last checkpoint of a namespace; earlier ones are not kept."""
        namespace = _namespace(config)
        stored = self.now.spaces.get(namespace)
        if stored is None or get_checkpoint_id(config) not in (None, stored.id):
            return None
        load = self.types.loads_typed
        values = {
            channel: load((kind, value))
            for channel, (_, kind, value) in stored.values.items()
            if kind != _EMPTY
        }
        writes = [
            (task, channel, load((kind, value)))
            for task, written in stored.writes.items()
            for channel, kind, value, _ in written.values()
        ]
        parent = None if stored.parent is None else _config(config, namespace, stored.parent)
        return CheckpointTuple(
            config=_config(config, namespace, stored.id),
            checkpoint=cast("Checkpoint", {**load(stored.checkpoint), "channel_values": values}),
            metadata=load(stored.metadata),
            parent_config=parent,
            pending_writes=writes,
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The last checkpoint of a namespace: there is no other."""
        for it in self.list(config, filter=filter, before=before, limit=limit):
            yield it

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The last checkpoint of a namespace: there is no other."""
        if config is not None and before is None and limit != 0 and (found := self.get_tuple(config)):
            metadata = cast("Mapping[str, Any]", found.metadata)
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                yield found

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        """Refuses channels whose value is spread over all checkpoints."""
        self._refuse_delta(channels)
        return {}

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Any:
        """Refuses channels whose value is spread over all checkpoints."""
        self._refuse_delta(channels)
        return {}

    def _refuse_delta(self, channels: Sequence[str]) -> None:
        if channels:
            _refuse(f"`{channels[0]}` is a DeltaChannel, which needs all checkpoints; only the last is kept.")

    def _save_in_thread(self) -> None:
        if not self._turn.function_run.is_on_its_loop:  # there, waiting would stop it: the next save has it
            wait_for(self.save(), self._loop)


async def _at_once(_: Callable[[str], bool]) -> None:
    """Nothing is shown beside."""


def _refuse(why: str) -> NoReturn:
    raise NotImplementedError(why)


def _namespace(config: RunnableConfig) -> str:
    return config.get("configurable", {}).get("checkpoint_ns", "")


def _config(config: RunnableConfig, namespace: str, checkpoint_id: str) -> RunnableConfig:
    thread = config.get("configurable", {}).get("thread_id")
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}
