"""What AG-UI clients send with a run, and what it means here.

A client sends its whole list of messages each time. Only the last question counts, the ids of the messages
before it, and the results that follow it. Unknown fields are ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from msgspec import Meta, Struct

from threadkeep.domain.approval import ApprovalAction, ApprovalScope, Decision
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.errors import InvalidRequest
from threadkeep.protocols.files import ReceivedFile, file_at

MOST_ID_CHARACTERS = 200

_GIVEN_ACTIONS = {
    ApprovalAction.ALLOW,
    ApprovalAction.DENY,
    ApprovalAction.EDIT,
    ApprovalAction.ANSWER,
}

OutsideId = Annotated[str, Meta(min_length=1, max_length=MOST_ID_CHARACTERS)]


class Source(Struct, frozen=True, rename="camel"):
    """Where the content of a file is: in `value` as base64 (`data`), or at an address (`url`)."""

    type: str
    value: str


class SentPart(Struct, frozen=True, rename="camel"):
    """A part of a user's message. Its content determines a file's type; `mimeType` is not needed."""

    type: str
    text: str = ""
    source: Source | None = None
    data: str | None = None
    url: str | None = None
    id: str | None = None
    filename: str | None = None
    metadata: Any = None


class SentMessage(Struct, frozen=True, rename="camel"):
    """A message of the client's list; only activities have an object as content."""

    role: str
    id: str = ""
    content: str | list[SentPart] | dict[str, Any] | None = None
    tool_call_id: str = ""
    error: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether somebody says something in it, under an id that is known here.

        A call is a message of its own, and so are its result and a thought.
        """
        return bool(self.id and self.content) and self.role in ("user", "assistant")


class SentTool(Struct, frozen=True):
    """A tool that the client runs."""

    name: str
    description: str = ""
    parameters: Any = None


class Resume(Struct, frozen=True, rename="camel"):
    """The answer to an interrupt."""

    interrupt_id: str
    status: str
    payload: Any = None


class RunInput(Struct, frozen=True, rename="camel"):
    """The body of a run."""

    thread_id: OutsideId
    run_id: OutsideId
    protocol_version: str | None = None
    messages: list[SentMessage] = []
    tools: list[SentTool] | None = None
    state: Any = None
    resume: list[Resume] | None = None

    @property
    def is_1_0(self) -> bool:
        """Whether the client speaks 1.0 or later: earlier ones don't say what they speak."""
        return self.protocol_version is not None


class StopInput(Struct, frozen=True, rename="camel"):
    """The body of a stop."""

    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The user's newest message."""

    id: str
    text: str
    files: Sequence[ReceivedFile]
    before: Sequence[str]
    """The ids of the texts before it."""


def question_of(sent: RunInput) -> Question | None:
    """The message that a run is to reply to: the last one, if it is the user's."""
    if not sent.messages or sent.messages[-1].role != "user":
        return None
    *before, message = sent.messages
    parts = message.content if isinstance(message.content, list) else []
    text = (
        message.content
        if isinstance(message.content, str)
        else "\n".join(part.text for part in parts if part.type == "text" and part.text)
    )
    return Question(
        id=message.id,
        text=text,
        files=[_file(part) for part in parts if part.type != "text"],
        before=[it.id for it in before if it.is_text],
    )


def results_of(sent: RunInput, now: int) -> dict[str, Decision]:
    """The results of tools that the client has run since the last question, by call."""
    results: dict[str, Decision] = {}
    for message in reversed(sent.messages):
        if message.role == "user":
            break
        if message.role == "tool" and message.tool_call_id not in results:
            error = message.error or None
            content = message.content if error is None else None
            results[message.tool_call_id] = Decision(
                action=ApprovalAction.RESULT, at=now, content=content, error=error
            )
    return results


def decisions_of(sent: RunInput, now: int) -> dict[str, Decision]:
    """The answers to interrupts, by request."""
    return {it.interrupt_id: _decision(it, now) for it in sent.resume or ()}


def _decision(answer: Resume, now: int) -> Decision:
    """An application chooses its payloads: `true`, `{approved}` and `{action}` decide, others answer."""
    if answer.status == "cancelled":
        return Decision(action=ApprovalAction.DENY, at=now)
    match answer.payload:
        case bool(approved):
            return _approval(approved, {}, now)
        case {"approved": bool(approved)} as given:
            return _approval(approved, cast("Mapping[str, Any]", given), now)
        case {"action": str(action)} as given if action in _GIVEN_ACTIONS:
            return _approval_as_given(ApprovalAction(action), cast("Mapping[str, Any]", given), now)
        case None:
            raise InvalidRequest(
                'Say in `payload` what was decided: `{"approved": true}`, or the answer to a question.',
                param="resume.payload",
            )
        case content:
            return Decision(action=ApprovalAction.ANSWER, at=now, content=content)


def _approval(approved: bool, given: Mapping[str, Any], now: int) -> Decision:
    if not approved:
        return Decision(action=ApprovalAction.DENY, at=now)
    action = ApprovalAction.ALLOW if given.get("arguments") is None else ApprovalAction.EDIT
    return _approval_as_given(action, given, now)


def _approval_as_given(action: ApprovalAction, given: Mapping[str, Any], now: int) -> Decision:
    scope, arguments = given.get("scope") or ApprovalScope.ONCE, given.get("arguments")
    if scope not in set(ApprovalScope):
        raise InvalidRequest("The scope must be `once` or `conversation`.", param="resume.payload.scope")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidRequest("The arguments must be an object.", param="resume.payload.arguments")
    return Decision(
        action=action,
        at=now,
        scope=ApprovalScope(scope),
        arguments=cast("Mapping[str, Any] | None", arguments),
        content=given.get("content"),
    )


def tools_of(sent: RunInput) -> tuple[ClientTool, ...]:
    """The tools that the client runs."""
    return tuple(
        ClientTool(name=it.name, description=it.description, parameters=_parameters(it))
        for it in sent.tools or ()
    )


def _parameters(tool: SentTool) -> Mapping[str, Any]:
    if tool.parameters is None:
        return {}
    parameters: Any = tool.parameters
    if not isinstance(parameters, dict):
        raise InvalidRequest(f"The parameters of `{tool.name}` must be a JSON schema.", param="tools")
    return cast("Mapping[str, Any]", tool.parameters)


def _file(part: SentPart) -> ReceivedFile:
    name, source = part.filename or _name_in(part.metadata) or part.type, part.source
    if part.id is not None:
        return ReceivedFile(name, file_id=part.id)
    if part.data is not None:
        return ReceivedFile(name, part.data)
    if source is not None and source.type == "data":
        return ReceivedFile(name, source.value)
    return file_at(part.url or (source.value if source else ""), name, param="messages")


def _name_in(metadata: Any) -> str | None:
    """A file's name, where CopilotKit puts it."""
    match metadata:
        case {"filename": str(name)}:
            return name or None
        case _:
            return None
