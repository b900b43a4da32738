"""A turn's tools: their names, their calls, and the storage of their results."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from threadkeep.context.attachments import FileRules, returned_image
from threadkeep.context.passages import numbered_passages
from threadkeep.context.tool_names import tools_by_name
from threadkeep.context.tool_results import (
    LEAST_RESULT_TOKENS,
    Excerpt,
    model_reads,
    stored_text,
)
from threadkeep.domain.errors import StorageError
from threadkeep.domain.events import Notice, Retrieval, ToolCalled, ToolProgress, ToolResultStored
from threadkeep.domain.ids import UserId
from threadkeep.domain.parts import FilePart
from threadkeep.domain.retrieval import PassageNumbers, RetrievalHit
from threadkeep.domain.text import storable
from threadkeep.domain.tool_call import MODEL_READS
from threadkeep.engine.json_values import TooDeep, clean
from threadkeep.engine.large_values import LargeValues, TooLarge, is_possible_image
from threadkeep.engine.model_call import ModelReads
from threadkeep.ports.gateway import TAKES_NO_FILES, ToolResultBlock, ToolSpec, ToolUse
from threadkeep.ports.schemas import NOT_CHECKED, Schemas
from threadkeep.ports.tools import (
    Asked,
    GivenInput,
    InputRequired,
    Progress,
    Returned,
    ReturnedFile,
    Tool,
    ToolSession,
)

log = logging.getLogger("threadkeep.engine")

MOST_TOOLS = 128
"""The number of tools that every provider accepts."""

MOST_ERROR_CHARACTERS = 4_000
MOST_PROGRESS_CHARACTERS = 500

ToolEvent = ToolProgress | Retrieval | Notice | ToolResultStored


MOST_IMAGES_OF_A_RESULT = 8
"""The number of a result's images to process and show; the others can be downloaded."""

KeepImage = Callable[[ReturnedFile], Awaitable[FilePart | None]]
"""Stores an image that a tool returned; None if it can't be shown."""


NOBODY = UserId("")
"""The user of calls that share no schema checks with other users' calls."""


async def no_image(file: ReturnedFile) -> FilePart | None:
    """Where images are files like any other."""
    return None


READS_TEXT = FileRules(TAKES_NO_FILES, 0, can_recall=True)
"""For models that accept no files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallingTurn:
    """The turn that calls tools."""

    id: str = ""
    user_id: UserId = NOBODY
    client_tools: Sequence[Tool] = ()
    """Those that its client runs."""
    found: Sequence[RetrievalHit] = ()
    """The passages that its model already has."""
    keep_image: KeepImage = no_image
    reads: FileRules = READS_TEXT
    """What its model receives of a result's files, and whether it can read the rest of one that was cut."""


_NO_TURN = CallingTurn()


class Toolbox:
    """A turn's tools, by the model's names for them."""

    def __init__(
        self,
        session: ToolSession | None,
        large_values: LargeValues,
        schemas: Schemas,
        turn: CallingTurn = _NO_TURN,
    ) -> None:
        self._session = session
        self._large_values = large_values
        self._schemas = schemas
        self._turn = turn
        self._numbers = PassageNumbers(turn.found)
        self._tools: Mapping[str, Tool] = {}
        self._denied: Mapping[str, Tool] = {}
        """Tools that the model isn't offered; one that calls them all the same hears why they don't run."""
        self._problems: dict[str, str] = {}
        self._reads: dict[str, ModelReads] = {}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return tuple(
            ToolSpec(name, tool.description, tool.input_schema) for name, tool in self._tools.items()
        )

    async def open(self, is_denied: Callable[[Tool], bool]) -> Sequence[Notice]:
        """Lists the available tools; returns notices about unavailable servers and tools left out."""
        tools, unavailable = await self._session.list() if self._session else ((), ())
        named = tools_by_name(tools)
        self._denied = {name: tool for name, tool in named.items() if is_denied(tool)}
        allowed = {name: tool for name, tool in named.items() if name not in self._denied}
        # What the request itself brings is never cut, but can't replace a tool of ours.
        brought = {tool.name: tool for tool in self._turn.client_tools if tool.name not in named}
        ours = dict(islice(allowed.items(), MOST_TOOLS - len(brought)))
        self._tools = {**ours, **brought}
        notices = [
            Notice("MCP_SERVER_UNAVAILABLE", f"Couldn't connect to {server.server}: {server.message}")
            for server in unavailable
        ]
        if replaced := [tool.name for tool in self._turn.client_tools if tool.name in named]:
            names = ", ".join(replaced)
            notices.append(Notice("CLIENT_TOOLS_LEFT_OUT", f"The agent has other tools named {names}."))
        if left_out := len(allowed) - len(ours):
            notices.append(
                Notice(
                    "TOO_MANY_TOOLS", f"Models accept at most {MOST_TOOLS} tools; {left_out} were left out."
                )
            )
        return notices

    async def called(self, use: ToolUse) -> ToolCalled:
        """The event for a call about to be made. Records use the server's names."""
        name, server = self._names(use)
        try:
            refs = await self._large_values.store({"arguments": use.arguments})
        except TooLarge as exc:
            self._problems[use.id] = f"The arguments can't be stored. {exc}"
            return ToolCalled(use.id, name, server, {}, model_name=use.name)
        return ToolCalled(use.id, name, server, {} if refs else use.arguments, refs, model_name=use.name)

    def reads(self, use: ToolUse) -> ModelReads:
        """What the model reads of a call that has ended."""
        return self._reads.pop(use.id)

    def _names(self, use: ToolUse) -> tuple[str, str]:
        tool = self.tool(use)
        return (tool.name, tool.server) if tool else (use.name, "")

    def tool(self, use: ToolUse) -> Tool | None:
        """The tool that a call refers to, if it exists."""
        return self._tools.get(use.name) or self._denied.get(use.name)

    async def problem(self, use: ToolUse, arguments: Mapping[str, Any]) -> str | None:
        """Why a call can't be made at all; the model reads it and can correct the call."""
        if problem := use.problem or self._problems.get(use.id):
            return problem
        tool = self.tool(use)
        if tool is None:
            return f"Tool {use.name!r} not found."
        problem = await self._schemas.problem(self._turn.user_id, tool.input_schema, arguments)
        if problem is None or problem == NOT_CHECKED:
            return problem
        return f"The arguments don't match the tool's schema. {problem}"

    async def call(
        self,
        tool: Tool,
        id_: str,
        arguments: Mapping[str, Any],
        emit: Callable[[ToolEvent], None],
        ask: Callable[[Asked], Awaitable[None]],
        *,
        given: GivenInput | None = None,
    ) -> Returned | InputRequired:
        """Passes a call to its tool; a failure of the tool is a result too, one of our storage is not.

        `ask` passes a question of the tool's server to the user; the tool's timeout pauses meanwhile.
        """
        assert self._session is not None
        now = asyncio.get_running_loop().time
        steps = self._session.call(tool, arguments, key=f"{self._turn.id}:{id_}", given=given)
        limit = asyncio.timeout(tool.timeout_s or None)
        try:
            async with limit:
                async for step in steps:
                    match step:
                        case Returned():
                            return step
                        case Progress():
                            emit(_progress(id_, step))
                        case Asked():
                            left = None if (end := limit.when()) is None else end - now()
                            limit.reschedule(None)
                            await ask(step)
                            limit.reschedule(None if left is None else now() + left)
                        case InputRequired():
                            return step
            return Returned("error", error="The tool ended without returning a result.", lost=True)
        except StorageError:
            raise
        except Exception as exc:
            if limit.expired():
                return Returned("timeout", error=f"The tool took longer than {tool.timeout_s:g} seconds.")
            log.exception("tool %s of %s failed", tool.name, tool.server)
            return Returned("error", error=f"The tool failed: {type(exc).__name__}.", lost=True)
        finally:
            await steps.aclose()

    async def store(
        self,
        use: ToolUse,
        returned: Returned,
        emit: Callable[[ToolEvent], None],
        *,
        duration_ms: int = 0,
        most_tokens: int = LEAST_RESULT_TOKENS,
        preface: str = "",
    ) -> None:
        """Stores what a tool returned and emits its event; the model reads `preface` before the result."""
        # In a thread: a large result can be hundreds of thousands of small values.
        returned = await asyncio.to_thread(_clean, returned)
        if returned.hits:
            # Number and emit without an await between: other calls run concurrently.
            numbers = self._numbers.add(returned.hits)
            if returned.result is None:
                returned = replace(returned, result=numbered_passages(returned.hits, numbers))
            emit(Retrieval(storable(returned.query), returned.hits, use.id))
        try:
            stored, reads = await self._store(use, returned, preface, most_tokens)
        except TooLarge as exc:
            refused = Returned("error", error=f"The result can't be stored. {exc}")
            stored, reads = await self._store(use, refused, "", most_tokens)
        self._reads[use.id] = reads
        emit(replace(stored, duration_ms=duration_ms))

    async def _store(
        self, use: ToolUse, returned: Returned, preface: str, most_tokens: int
    ) -> tuple[ToolResultStored, ModelReads]:
        """What is stored of a result, and what the model reads of it; raises TooLarge."""
        images, others = await self._keep_images(returned.files)
        artifact_ids = (
            *(image.file_id for image in images),
            *await self._large_values.store_files(others),
        )
        images += returned.recalled
        values = {"result": returned.result, "chart_data": returned.chart_data}
        refs = await self._large_values.store(values, always=("chart_data",))
        text = preface + stored_text(returned.result, returned.error)
        reads = model_reads(use.id, text, most_tokens, can_recall=self._turn.reads.can_recall)
        # Later turns send the same text without loading the whole result.
        if preface or "result" in refs or reads != model_reads(use.id, text):
            refs |= await self._large_values.store({MODEL_READS: reads}, always=(MODEL_READS,))
        stored = ToolResultStored(
            tool_call_id=use.id,
            tool_name=self._names(use)[0],
            status=returned.status,
            result=Excerpt.of(text).to_store() if "result" in refs else returned.result,
            error=returned.error,
            chart_data=None if "chart_data" in refs else returned.chart_data,
            artifact_ids=artifact_ids,
            refs=refs,
            images=tuple(map(returned_image, images)),
        )
        block = ToolResultBlock(use.id, reads, is_error=returned.status != "ok")
        return stored, (block, *self._turn.reads.image_blocks(images, use.id))

    async def _keep_images(
        self, files: Sequence[ReturnedFile]
    ) -> tuple[list[FilePart], Sequence[ReturnedFile]]:
        """Stores a result's first images for models and pages; returns them and the other files."""
        images: list[FilePart] = []
        others: list[ReturnedFile] = []
        looked_at = 0
        for file in files:
            part = None
            if is_possible_image(file) and looked_at < MOST_IMAGES_OF_A_RESULT:
                looked_at += 1
                part = await self._turn.keep_image(file)
            if part is None:
                others.append(file)
            else:
                images.append(part)
        return images, others


def clean_use(use: ToolUse) -> ToolUse:
    """A call with arguments that can be stored and sent back, or with a `problem` if that's impossible."""
    name = storable(use.name)
    try:
        arguments: dict[str, Any] = clean(use.arguments)
    except TooDeep:
        return replace(use, name=name, arguments={}, problem="The arguments are nested too deeply.")
    return replace(use, name=name, arguments=arguments)


def _clean(returned: Returned) -> Returned:
    error = None if returned.error is None else _cut(storable(returned.error), MOST_ERROR_CHARACTERS)
    try:
        result, chart_data = clean(returned.result), clean(returned.chart_data)
    except TooDeep:
        return Returned("error", error="The tool's result is nested too deeply.")
    return replace(returned, result=result, chart_data=chart_data, error=error)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… [cut here: {len(text)} characters, of which the first {most} are shown]"


def _progress(id_: str, step: Progress) -> ToolProgress:
    message = None if step.message is None else storable(step.message[:MOST_PROGRESS_CHARACTERS])
    progress = step.progress if math.isfinite(step.progress) else 0.0
    total = step.total if step.total is not None and math.isfinite(step.total) else None
    return ToolProgress(id_, progress, total, message)
