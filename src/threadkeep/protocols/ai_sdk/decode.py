"""What AI SDK clients send, and what they mean by it.

A client sends its whole list each time, or `message` alone. Only what is new in it is read: the last message,
and the ids of those before it, which say where it belongs. Never trust the list's account of
what the agent or a tool said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.ai_sdk.frames import Version
from threadkeep.protocols.files import ReceivedFile, file_at


class ChatQuery(Struct, frozen=True, kw_only=True):
    """Which version of `ai` the client has; 6 also suits a 7."""

    version: Version = 6


class SentMessage(Struct, frozen=True, kw_only=True):
    """A message of the client's list."""

    id: str = ""
    role: str = ""
    parts: list[Raw] = []


class ChatBody(Struct, frozen=True, kw_only=True, rename="camel"):
    """A request. `message` is for clients that send only the last one; apps add `agentId` and `model`."""

    id: str
    messages: list[SentMessage] = []
    message: SentMessage | None = None
    trigger: Literal["submit-message", "regenerate-message"] | None = None
    message_id: str | None = None
    agent_id: str | None = None
    model: str | None = None
    tools: Raw | UnsetType = UNSET
    config: Raw | UnsetType = UNSET

    @property
    def last(self) -> SentMessage | None:
        """The message that the request is about."""
        return self.message or (self.messages[-1] if self.messages else None)


@dataclass(frozen=True, slots=True)
class Submit:
    """A new message, or an edited one."""

    id: str
    content: str
    files: tuple[ReceivedFile, ...]
    before: tuple[str, ...]
    """The ids of the messages before it."""
    starts_over: bool
    """Whether the client means that there is nothing before it."""


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Another answer to a question."""

    question_id: str | None
    answer_id: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Decisions of the user and results of the client, by request id or call id."""

    decisions: Mapping[str, Decision]


Request = Submit | Regenerate | Answer


def request_of(body: ChatBody, now: int) -> Request:
    """What a request asks for."""
    last = body.last
    if body.trigger == "regenerate-message":
        return Regenerate(last.id if last and last.role == "user" else None, body.message_id)
    if last is None:
        raise InvalidRequest("Send `messages`, or `message`.", param="messages")
    match last.role:
        case "user":
            return _submit(body, last)
        case "assistant":
            return Answer(_decisions(last, now))
        case _:
            raise InvalidRequest("The last message must be the user's or the agent's.", param="messages")


def _submit(body: ChatBody, message: SentMessage) -> Submit:
    parts = [_part(raw) for raw in message.parts]
    before = () if body.message else tuple(it.id for it in body.messages[:-1])
    # assistant-ui always sends its whole list, and an edited message under a new id.
    is_whole = body.message is None and (body.message_id == message.id or body.tools is not UNSET)
    return Submit(
        id=message.id,
        content="\n\n".join(it.text for it in parts if isinstance(it, _Text) and it.text),
        files=tuple(
            file_at(it.url, it.filename or "file", param="messages") for it in parts if isinstance(it, _File)
        ),
        before=before,
        starts_over=is_whole and not before,
    )


# Parts


class _Type(Struct, frozen=True):
    type: str = ""


class _Text(Struct, frozen=True):
    text: str


class _File(Struct, frozen=True, rename="camel"):
    url: str
    filename: str | None = None


class _Approval(Struct, frozen=True):
    id: str
    approved: bool | None = None


class _Tool(Struct, frozen=True, rename="camel"):
    tool_call_id: str
    state: str
    approval: _Approval | None = None
    provider_executed: bool | None = None
    output: Any = None
    error_text: str | None = None


_StepStart = Literal["step-start"]
_Part = _Text | _File | _Tool | _StepStart | None

T = TypeVar("T")


def _part(raw: Raw) -> _Part:
    """A part that we read; None for all others."""
    type_ = _decode(raw, _Type).type
    if type_ == "text":
        return _decode(raw, _Text)
    if type_ == "file":
        return _decode(raw, _File)
    if type_ == "dynamic-tool" or type_.startswith("tool-"):
        return _decode(raw, _Tool)
    return "step-start" if type_ == "step-start" else None


def _decode(raw: Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"A part of the last message isn't valid: {exc}.", param="messages") from exc


def _decisions(message: SentMessage, now: int) -> Mapping[str, Decision]:
    """What the last step's calls were answered with; those of earlier steps have been answered before."""
    parts = [_part(raw) for raw in message.parts]
    steps = [at for at, part in enumerate(parts) if part == "step-start"]
    last_step = parts[steps[-1] :] if steps else parts
    decided: dict[str, Decision] = {}
    for part in last_step:
        if isinstance(part, _Tool) and (decision := _decision(part, now)) is not None:
            decided[decision[0]] = decision[1]
    if not decided:
        raise InvalidRequest(
            "The last message is the agent's, and answers none of its requests. Send a message of the user.",
            param="messages",
        )
    return decided


def _decision(part: _Tool, now: int) -> tuple[str, Decision] | None:
    match part:
        case _Tool(state="approval-responded", approval=_Approval(id=id_, approved=bool(approved))):
            return id_, Decision(action=ApprovalAction.ALLOW if approved else ApprovalAction.DENY, at=now)
        case _Tool(provider_executed=True):
            return None
        case _Tool(state="output-available"):
            return part.tool_call_id, Decision(action=ApprovalAction.RESULT, at=now, content=part.output)
        case _Tool(state="output-error"):
            error = part.error_text or "The tool failed."
            return part.tool_call_id, Decision(action=ApprovalAction.RESULT, at=now, error=error)
        case _:
            return None


# What comes with a request


class _SentTool(Struct, frozen=True):
    description: str = ""
    parameters: dict[str, Any] = {}


class _Config(Struct, frozen=True, rename="camel"):
    model_name: str | None = None


_tools_decoder = msgspec.json.Decoder(dict[str, _SentTool])
_config_decoder = msgspec.json.Decoder(_Config)


def tools_of(body: ChatBody) -> tuple[ClientTool, ...]:
    """The tools that the client runs, as assistant-ui sends them: by name."""
    if body.tools is UNSET:
        return ()
    try:
        sent = _tools_decoder.decode(body.tools)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"`tools` must be an object of tools by name: {exc}.", param="tools") from exc
    return tuple(
        ClientTool(name=name, description=it.description, parameters=it.parameters)
        for name, it in sent.items()
    )


def model_of(body: ChatBody) -> str | None:
    """The model that the app chose, itself or in assistant-ui's model context."""
    if body.model or body.config is UNSET:
        return body.model
    try:
        return _config_decoder.decode(body.config).model_name
    except msgspec.ValidationError:
        return None
