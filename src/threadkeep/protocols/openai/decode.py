"""What clients of the Responses API send, and what it means here.

A client may send its whole list of items each time. Only what follows the last item of a response counts: the
user's new message, or what was decided. The items before it say where that belongs. Unknown fields are
ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.parts import BLANK_LINE
from threadkeep.domain.text import check_storable
from threadkeep.protocols.files import ReceivedFile
from threadkeep.protocols.openai.ids import owner_of_item, parse_approval_id, parse_file_id
from threadkeep.protocols.openai.outputs import chosen_tool, output_asked

MOST_METADATA = 16
MOST_INSTRUCTION_CHARACTERS = 200_000

MetadataKey = Annotated[str, Meta(max_length=64)]
MetadataValue = Annotated[str, Meta(max_length=512)]
Metadata = Annotated[dict[MetadataKey, MetadataValue], Meta(max_length=MOST_METADATA)]

_FROM_USER = {"user", "system", "developer"}
_DECISIONS = {"mcp_approval_response", "function_call_output"}
_FILES = {"input_image", "input_file"}


class SentContent(Struct, frozen=True):
    """A part of a message."""

    type: str = ""
    text: str | None = None
    image_url: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class SentItem(Struct, frozen=True):
    """An item of the input: a message, a decision, or one of an earlier response."""

    type: str | None = None
    id: str | None = None
    role: str | None = None
    content: str | list[SentContent] | None = None
    approval_request_id: str | None = None
    approve: bool | None = None
    call_id: str | None = None
    output: Any = None
    name: str | None = None
    arguments: str | None = None

    @property
    def is_message(self) -> bool:
        """Whether the user, or their application, says something in it."""
        return self.type in (None, "message") and self.role in _FROM_USER

    @property
    def file_count(self) -> int:
        """How many files a message has."""
        return sum(it.type in _FILES for it in self.content) if isinstance(self.content, list) else 0

    @property
    def is_decision(self) -> bool:
        """Whether it answers what a response asked for."""
        return self.type in _DECISIONS


class ConversationParam(Struct, frozen=True):
    """A conversation, by its id."""

    id: str


class FormatParam(Struct, frozen=True):
    """The format of the reply."""

    type: str | None = None
    name: str | None = None
    schema: dict[str, Any] | None = None


class TextParam(Struct, frozen=True):
    """What the reply's text should be like."""

    format: FormatParam | None = None


class CreateResponse(Struct, frozen=True):
    """The body of a request for a response."""

    model: str | None = None
    input: str | list[SentItem] | None = None
    instructions: str | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    conversation: str | ConversationParam | None = None
    previous_response_id: str | None = None
    metadata: Metadata | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    text: TextParam | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None

    @property
    def conversation_id(self) -> str | None:
        """The conversation that it names."""
        named = self.conversation
        return named.id if isinstance(named, ConversationParam) else named


class RetrieveQuery(Struct, frozen=True):
    """How to read a response: at once, or as a stream after one of its events."""

    stream: bool = False
    starting_after: Annotated[int, Meta(ge=-1)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What a request asks."""

    text: str
    files: Sequence[ReceivedFile | str] = ()
    """Its files: those whose content it brings, and the ids of those that the user has here."""
    instructions: str = ""
    """What the application says to the model."""
    decisions: Mapping[str, Decision] = field(default_factory=dict[str, Decision])
    """What was decided, by request or by call."""
    after: str | None = None
    """The turn or message of the newest item that the client lists with an id of ours."""
    claimed: Sequence[str] = ()
    """The replies that the client lists without an id of ours."""


def input_of(body: CreateResponse, now: int) -> Input:
    """The new part of a request's input."""
    if not isinstance(body.input, list):
        return Input(text=body.input or "", instructions=_instructions(body, ()))
    earlier, new = _split(body.input)
    asked = [it for it in new if it.role == "user"]
    return Input(
        text=BLANK_LINE.join(filter(None, map(text_of, asked))),
        files=[file for it in asked for file in files_of(it, "input")],
        instructions=_instructions(body, [it for it in new if it.is_message and it.role != "user"]),
        decisions=dict(_decision(it, now) for it in new if it.is_decision),
        after=_owner_of([*earlier, *new]),
        claimed=[text_of(it) for it in earlier if it.role == "assistant" and not owner_of_item(it.id or "")],
    )


def files_of(item: SentItem, param: str) -> Sequence[ReceivedFile | str]:
    """The files of a user's message: those whose content it brings, and the ids of others."""
    parts = _parts(item)
    if unknown := next((it for it in parts if it.type not in _READ), None):
        raise InvalidRequest(f"A message can't have content of the type {unknown.type!r}.", param=param)
    files = (it for it in parts if it.type in _FILES)
    return [parse_file_id(it.file_id) if it.file_id else _file(it, param) for it in files]


_READ = {"input_text", "text", *_FILES}


def _split(items: Sequence[SentItem]) -> tuple[Sequence[SentItem], Sequence[SentItem]]:
    """The items up to the last one of a response, and the new ones."""
    ends = [at for at, it in enumerate(items, 1) if not it.is_message and not it.is_decision]
    end = ends[-1] if ends else 0
    return items[:end], items[end:]


def _owner_of(items: Sequence[SentItem]) -> str | None:
    """The turn or message of the newest item whose id names one."""
    found = (owner_of_item(it.id) for it in reversed(items) if it.id)
    return next(filter(None, found), None)


def output_of(body: CreateResponse) -> Mapping[str, Any] | None:
    """The JSON schema that the reply is to fit, if it is to be JSON."""
    wanted = body.text.format if body.text else None
    if wanted is None:
        return None
    return output_asked(wanted.type, wanted.schema, "text.format", "text.format.schema")


def tool_chosen(body: CreateResponse) -> str | None:
    """The function that the model must call, or "" for any; None: it decides."""
    return chosen_tool(body.tool_choice, [it.name for it in tools_of(body)])


def check_references(body: CreateResponse) -> None:
    """Refuses items that the client only names, unless they are ours: nobody could send them to the model."""
    items = body.input if isinstance(body.input, list) else []
    if any(it.type == "item_reference" and owner_of_item(it.id or "") is None for it in items):
        raise InvalidRequest("The input refers to an item that this server didn't produce.", param="input")


def _instructions(body: CreateResponse, messages: Sequence[SentItem]) -> str:
    return checked_instructions(instructions_of(body, messages))


def instructions_of(body: CreateResponse, messages: Sequence[SentItem]) -> str:
    """What the application says to the model: for itself, and in messages of its own."""
    return BLANK_LINE.join(filter(None, [body.instructions or "", *map(text_of, messages)]))


def checked_instructions(joined: str) -> str:
    """Instructions that can be stored."""
    if len(joined) > MOST_INSTRUCTION_CHARACTERS:
        raise InvalidRequest(
            f"Instructions can have at most {MOST_INSTRUCTION_CHARACTERS} characters.", param="instructions"
        )
    check_storable(joined, "instructions")
    return joined


def _parts(item: SentItem) -> Sequence[SentContent]:
    return item.content if isinstance(item.content, list) else ()


def text_of(item: SentItem) -> str:
    """The text of a message."""
    if isinstance(item.content, str):
        return item.content
    return "\n".join(part.text for part in _parts(item) if part.text)


def _file(part: SentContent, param: str) -> ReceivedFile:
    name = part.filename or ("image" if part.type == "input_image" else "file")
    data = part.image_url if part.type == "input_image" else part.file_data
    if not data or data.startswith(("http:", "https:")):
        raise InvalidRequest(
            f"Send the content of {name} itself or its `file_id`; Threadkeep doesn't fetch addresses.",
            param=param,
        )
    return ReceivedFile(name, data)


def _decision(item: SentItem, now: int) -> tuple[str, Decision]:
    if item.type == "function_call_output":
        if not item.call_id:
            raise InvalidRequest("A function's output needs the `call_id` of its call.", param="input")
        return item.call_id, Decision(action=ApprovalAction.RESULT, at=now, content=item.output)
    if not item.approval_request_id or item.approve is None:
        raise InvalidRequest("An approval response needs `approval_request_id` and `approve`.", param="input")
    action = ApprovalAction.ALLOW if item.approve else ApprovalAction.DENY
    return parse_approval_id(item.approval_request_id), Decision(action=action, at=now)


def tools_of(body: CreateResponse) -> tuple[ClientTool, ...]:
    """The functions that the client runs."""
    offered = () if body.tool_choice == "none" else body.tools or ()
    return tuple(client_tool(it) for it in offered if not _names_server(it))


def _names_server(tool: Mapping[str, Any]) -> bool:
    """Whether it only names one of the agent's own servers: `openai-agents` wants to know whose tools ask."""
    return tool.get("type") == "mcp" and not tool.get("server_url") and not tool.get("connector_id")


def client_tool(tool: Mapping[str, Any]) -> ClientTool:
    """A function that the client runs."""
    kind, name = tool.get("type"), tool.get("name")
    parameters: Any = tool.get("parameters") or {}
    if kind != "function":
        raise InvalidRequest(
            f"Tools of the type {kind!r} aren't supported. A request can add only functions; the agent's "
            "other tools are in its settings.",
            param="tools",
        )
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise InvalidRequest("A function needs a `name`, and `parameters` as a JSON schema.", param="tools")
    return ClientTool(
        name=name,
        description=str(tool.get("description") or ""),
        parameters=cast("Mapping[str, Any]", parameters),
    )
