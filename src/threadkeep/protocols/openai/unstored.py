"""Responses with `store: false`: replies to the items that the client lists; nothing is stored."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.turn import BegunWith
from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream
from threadkeep.protocols.files import ReceivedFile
from threadkeep.protocols.openai import frames, stateless
from threadkeep.protocols.openai.decode import (
    CreateResponse,
    SentItem,
    files_of,
    instructions_of,
    output_of,
    text_of,
    tool_chosen,
    tools_of,
)
from threadkeep.protocols.openai.encode import ResponseEncoder, ResponseHead, ResponseStream
from threadkeep.protocols.openai.reading import choice_shown, format_name, text_shown, tools_shown
from threadkeep.protocols.openai.stateless import FilesByPlace, PlacedFile, StatelessRequest, arguments_of
from threadkeep.services.completions.given import GivenCall, GivenMessage


async def unstored(request: RequestContext, body: CreateResponse) -> EventStream | frames.Response:
    """A response that can't be read again."""
    _check(body)
    asked = await request.aside(_asked, body)
    completion, agent = await stateless.begin(request, asked)
    head = ResponseHead(
        turn_id=completion.turn.id,
        part=1,
        created_at=completion.turn.started_at,
        model=body.model or agent.name,
        instructions=body.instructions,
        metadata=body.metadata or {},
        tools=tools_shown(asked.begun_with.tools),
        tool_choice=choice_shown(asked.begun_with.tool_choice),
        text=text_shown(asked.begun_with.output, format_name(body)),
        is_stored=False,
    )
    if body.stream:
        return stateless.stream(completion, ResponseEncoder(head))
    told = ResponseStream(head)
    await stateless.read_whole(request, completion, told.add)
    told.pause()
    assert told.response is not None  # it has ended or waits
    return told.response


def _asked(body: CreateResponse) -> StatelessRequest:
    items = body.input if isinstance(body.input, list) else [SentItem(role="user", content=body.input or "")]
    return StatelessRequest(
        model=body.model,
        files=_files(items),
        history=lambda files: history_of(items, files),
        field="input",
        begun_with=BegunWith(
            instructions=instructions_of(body, [it for it in items if it.is_message and it.role != "user"]),
            tools=tools_of(body),
            temperature=body.temperature,
            max_tokens=body.max_output_tokens,
            output=output_of(body),
            tool_choice=tool_chosen(body),
        ),
    )


def _check(body: CreateResponse) -> None:
    for name in ("conversation", "previous_response_id", "background"):
        if getattr(body, name):
            raise InvalidRequest(
                f"A response that is not stored can't have `{name}`: send the whole input, or store it.",
                param=name,
            )


def _files(items: Sequence[SentItem]) -> Sequence[PlacedFile]:
    return [
        PlacedFile(at, ReceivedFile("", file_id=file) if isinstance(file, str) else file)
        for at, item in enumerate(items)
        if item.role == "user"
        for file in files_of(item, "input")
    ]


def history_of(items: Sequence[SentItem], files: FilesByPlace) -> list[GivenMessage]:
    """What users, models and functions said; items of the agent's own tools are not sent back."""
    outputs = {it.call_id: _output(it.output) for it in items if it.type == "function_call_output"}
    history: list[GivenMessage] = []
    calls: list[GivenCall] = []
    for at, item in enumerate(items):
        if item.type == "function_call":
            calls.append(_call(item, outputs))
            continue
        history += _called(calls)
        calls = []
        if item.role == "user":
            history.append(GivenMessage(role="user", text=text_of(item), files=files.get(at, ())))
        elif item.role == "assistant":
            history.append(GivenMessage(role="assistant", text=text_of(item)))
    history += _called(calls)
    if outputs:
        raise InvalidRequest(f"The input has no function call {next(iter(outputs))!r}.", param="input")
    if not history or (history[-1].role == "assistant" and not history[-1].calls):
        raise InvalidRequest("The input must end with what the user, or a function, says.", param="input")
    return history


def _called(calls: Sequence[GivenCall]) -> Iterator[GivenMessage]:
    if calls:
        yield GivenMessage(role="assistant", text="", calls=calls)


def _call(item: SentItem, outputs: dict[str | None, str]) -> GivenCall:
    if item.call_id not in outputs:
        raise InvalidRequest(f"The function call {item.call_id!r} has no output.", param="input")
    arguments = arguments_of(item.arguments or "")
    return GivenCall(item.call_id or "", item.name or "", arguments, outputs.pop(item.call_id))


def _output(output: Any) -> str:
    return output if isinstance(output, str) else msgspec.json.encode(output).decode()
