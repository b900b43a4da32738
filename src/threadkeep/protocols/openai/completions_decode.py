"""What clients of chat completions send, and what it means here. Unknown fields are ignored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.parts import BLANK_LINE
from threadkeep.protocols.files import ReceivedFile, file_at
from threadkeep.protocols.openai.decode import (
    ConversationParam,
    Input,
    checked_instructions,
    client_tool,
)
from threadkeep.protocols.openai.ids import parse_file_id
from threadkeep.protocols.openai.outputs import chosen_tool, object_or_nothing, output_asked
from threadkeep.protocols.openai.stateless import FilesByPlace, PlacedFile, arguments_of
from threadkeep.services.completions.given import GivenCall, GivenMessage

MOST_MESSAGES = 20_000

_INSTRUCTING = ("system", "developer")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_FILE_PARTS = ("image_url", "file")
_TEXT_PARTS = ("text", "refusal")


class ImageUrl(Struct, frozen=True):
    """An image, as a data URL."""

    url: str


class FileContent(Struct, frozen=True):
    """A file: its content as a data URL, or the id of one that was uploaded."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class SentPart(Struct, frozen=True):
    """A part of a message."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    file: FileContent | None = None


class SentFunction(Struct, frozen=True):
    """Which function the model called, with its arguments as JSON."""

    name: str
    arguments: str = "{}"


class SentCall(Struct, frozen=True):
    """A call that the model made."""

    id: str
    function: SentFunction | None = None


class SentMessage(Struct, frozen=True):
    """A message of the history."""

    role: str
    content: str | list[SentPart] | None = None
    tool_calls: list[SentCall] | None = None
    tool_call_id: str | None = None

    @property
    def parts(self) -> Sequence[SentPart]:
        """Its parts."""
        if isinstance(self.content, str):
            return (SentPart("text", self.content),)
        return self.content or ()

    @property
    def text(self) -> str:
        """Its text."""
        return "\n".join(text for it in self.parts if (text := it.text or it.refusal))


class StreamOptions(Struct, frozen=True):
    """What a stream reports beyond the reply."""

    include_usage: bool | None = None


class CreateCompletion(Struct, frozen=True, kw_only=True):
    """The body of a request for a chat completion; `conversation` is a field of ours."""

    messages: Annotated[list[SentMessage], Meta(min_length=1, max_length=MOST_MESSAGES)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    conversation: str | ConversationParam | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: int | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    response_format: dict[str, Any] | None = None
    stop: str | list[str] | None = None
    functions: list[Any] | None = None

    @property
    def most_tokens(self) -> int | None:
        """How long the reply may be."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def instructions(self) -> str:
        """The application's instructions to the model, wherever they stand."""
        return BLANK_LINE.join(text for it in self.messages if it.role in _INSTRUCTING and (text := it.text))

    @property
    def client_tools(self) -> tuple[ClientTool, ...]:
        """The functions that the model may call."""
        return tuple(map(client_tool, self.flat_tools))

    @property
    def flat_tools(self) -> list[dict[str, Any]]:
        """The same as responses have them, where a function isn't nested."""
        return [] if self.tool_choice == "none" else list(map(_flat, self.tools or ()))


def output_schema(body: CreateCompletion) -> Mapping[str, Any] | None:
    """The JSON schema that the reply is to fit, if it is to be JSON."""
    wanted = body.response_format or {}
    schema = object_or_nothing(wanted.get("json_schema")).get("schema")
    where = "response_format.json_schema.schema"
    return output_asked(wanted.get("type"), schema, "response_format", where)


def tool_chosen(body: CreateCompletion) -> str | None:
    """The function that the model must call, or "" for any; None: it decides."""
    return chosen_tool(body.tool_choice, [str(it.get("name")) for it in body.flat_tools])


def check_completion(body: CreateCompletion) -> None:
    """Refuses fields that we don't support and whose absence would change the reply."""
    refused = {
        "n": body.n not in (None, 1),
        "logprobs": bool(body.logprobs),
        "modalities": body.modalities not in (None, [], ["text"]),
        "stop": bool(body.stop),
        "functions": bool(body.functions),
    }
    if name := next((name for name, is_refused in refused.items() if is_refused), None):
        raise InvalidRequest(_REFUSALS[name], param=name)
    for at, message in enumerate(body.messages):
        _check_message(at, message)
    said = (it.role for it in reversed(body.messages) if it.role not in _INSTRUCTING)
    if next(said, None) not in ("user", "tool"):
        raise InvalidRequest(
            "The last message must be the user's, or what a function returned.", param="messages"
        )


_REFUSALS = {
    "n": "An agent gives one reply: `n` can only be 1.",
    "logprobs": "Agents don't give `logprobs`.",
    "modalities": "Agents reply with text only.",
    "stop": "Agents don't take `stop`: end the reply by closing the connection.",
    "functions": "Send functions as `tools`.",
}


def _check_message(at: int, message: SentMessage) -> None:
    param = f"messages[{at}]"
    if message.role not in _ROLES:
        raise InvalidRequest(
            f"{message.role[:40]!r} can't be a role: it is one of {', '.join(_ROLES)}.", param=f"{param}.role"
        )
    files = _FILE_PARTS if message.role == "user" else ()
    for part in message.parts:
        if part.type not in (*_TEXT_PARTS, *files):
            raise InvalidRequest(
                f"A message of the role {message.role} can't have content of the type {part.type[:40]!r}.",
                param=f"{param}.content",
            )
    if message.tool_calls and message.role != "assistant":
        raise InvalidRequest("Only the assistant calls functions.", param=f"{param}.tool_calls")


def _flat(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    return {**function, "type": tool.get("type")} if isinstance(function, dict) else tool


def files_of(body: CreateCompletion) -> Sequence[PlacedFile]:
    """The files of the history."""
    return [
        PlacedFile(at, _file(part, f"messages[{at}].content"))
        for at, message in enumerate(body.messages)
        for part in message.parts
        if part.type in _FILE_PARTS
    ]


def _file(part: SentPart, param: str) -> ReceivedFile:
    if part.type == "image_url" and part.image_url:
        url = part.image_url
        return file_at(url if isinstance(url, str) else url.url, "image", param=param)
    sent = part.file
    if sent is None or not (sent.file_id or sent.file_data):
        raise InvalidRequest(f"This part has no content: {part.type}.", param=param)
    if sent.file_id:
        return ReceivedFile(sent.filename or "file", file_id=parse_file_id(sent.file_id))
    return ReceivedFile(sent.filename or "file", sent.file_data or "")


def history_of(messages: Sequence[SentMessage], files: FilesByPlace) -> list[GivenMessage]:
    """The history without what instructs the model; each call with what it returned."""
    history: list[GivenMessage] = []
    results: list[SentMessage] = []
    for at in range(len(messages) - 1, -1, -1):  # results come after their calls
        message = messages[at]
        if message.role == "tool":
            results.append(message)
        elif message.role == "assistant":
            calls = list(_calls(at, message, results))
            history.append(GivenMessage(role="assistant", text=message.text, calls=calls))
            results = []
        elif message.role == "user":
            _check_none_left(at + 1, results)
            history.append(GivenMessage(role="user", text=message.text, files=files.get(at, ())))
    _check_none_left(0, results)
    return history[::-1]


def _calls(at: int, message: SentMessage, results: Sequence[SentMessage]) -> Iterator[GivenCall]:
    """The calls of a reply, each with its result from the messages right after it."""
    returned = {it.tool_call_id: it.text for it in results}
    for call in message.tool_calls or ():
        if call.function is None:
            raise InvalidRequest("Only functions can be called.", param=f"messages[{at}].tool_calls")
        if call.id not in returned:
            raise InvalidRequest(
                f"The call {call.id[:100]!r} has no result: a message of the role `tool` must follow it.",
                param=f"messages[{at}].tool_calls",
            )
        result = returned.pop(call.id)
        yield GivenCall(call.id, call.function.name, arguments_of(call.function.arguments), result)
    if returned:
        raise _no_call(at + 1, next(iter(returned)))


def _check_none_left(at: int, results: Sequence[SentMessage]) -> None:
    if results:
        raise _no_call(at, results[-1].tool_call_id)


def _no_call(at: int, call_id: str | None) -> InvalidRequest:
    return InvalidRequest(
        f"This `tool` message is the result of {(call_id or '')[:100]!r}, but no tool call with this id "
        "comes before it.",
        param=f"messages[{at}].tool_call_id",
    )


def new_input(body: CreateCompletion, now: int) -> Input:
    """What is new for a stored conversation: what follows the last reply."""
    ends = [at for at, it in enumerate(body.messages, 1) if it.role == "assistant"]
    new = body.messages[ends[-1] if ends else 0 :]
    first = len(body.messages) - len(new)
    files = [it.file for it in files_of(body) if it.at >= first]
    asked = [it for it in new if it.role == "user"]
    return Input(
        text=BLANK_LINE.join(text for it in asked if (text := it.text)),
        files=[it.file_id or it for it in files],
        instructions=checked_instructions(body.instructions),
        decisions={
            it.tool_call_id or "": Decision(action=ApprovalAction.RESULT, at=now, content=it.text)
            for it in new
            if it.role == "tool"
        },
    )
