"""What AgentX clients send, and decoding it. Which service a request calls is in `requests.py`."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from threadkeep.domain.errors import InvalidRequest, ThreadkeepError
from threadkeep.wire.decoding import decode_body_aside
from threadkeep.wire.json_shape import check_shape

_REQUEST = re.compile(r"([A-Za-z0-9_.-]{1,64})_request")
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Auth:
    """Signs in. Only this one header is read: no other could be trusted in a message."""

    authorization: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Follows a session, after a cursor."""

    session_id: str
    after_cursor: str | None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Leaves a session."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request by name, without the `_request` suffix."""

    name: str
    request_id: str | int
    data: dict[str, Any]
    refusal: ThreadkeepError | None = None
    """Why its data can't be accepted; then `data` is empty."""


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledges an event. Nothing waits for it."""


ClientFrame = Auth | Subscribe | Unsubscribe | Request | Ack


class _Incoming(Struct, frozen=True, rename="camel"):
    type: str = ""
    session_id: str = ""
    after_cursor: str | None = None
    headers: dict[str, Any] = {}
    data: dict[str, Any] = {}
    ack: str | None = msgspec.field(default=None, name="__ack")


class _RequestId(Struct, frozen=True, rename="camel"):
    request_id: str | int


class _Answerable(Struct, frozen=True):
    """The parts of a request that suffice to answer it; the rest is ignored."""

    type: str
    data: _RequestId


_decoder = msgspec.json.Decoder(_Incoming)
_answerable_decoder = msgspec.json.Decoder(_Answerable)


async def decode(raw: bytes) -> ClientFrame:
    """Decodes a client's frame."""
    try:
        check_shape(raw)
        incoming = await decode_body_aside(raw, _decoder)
    except ThreadkeepError as exc:
        if (request := _refused(raw, exc)) is None:
            raise
        return request
    if incoming.type == "auth":
        return Auth(_authorization(incoming.headers))
    if incoming.type == "subscribe":
        return Subscribe(incoming.session_id, incoming.after_cursor)
    if incoming.type == "unsubscribe":
        return Unsubscribe(incoming.session_id)
    if named := _REQUEST.fullmatch(incoming.type):
        return Request(named[1], _request_id(incoming.data), incoming.data)
    if incoming.ack is not None:
        return Ack()
    raise InvalidRequest("Unknown message type.", param="type")


def _refused(raw: bytes, refusal: ThreadkeepError) -> Request | None:
    """An invalid request, if it can be answered: its client waits for that."""
    try:
        # JavaScript writes a lone surrogate as such an escape, which our decoders reject.
        request = _answerable_decoder.decode(_HALF_PAIR.sub(b"?", raw))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    named = _REQUEST.fullmatch(request.type)
    return Request(named[1], request.data.request_id, {}, refusal) if named else None


def _authorization(headers: dict[str, Any]) -> str:
    given = [value for name, value in headers.items() if name.lower() == "authorization"]
    if len(given) != 1 or not isinstance(given[0], str) or not given[0].isascii():
        raise InvalidRequest("Send one header `Authorization: Bearer <token>`.", param="headers")
    return given[0]


def _request_id(data: dict[str, Any]) -> str | int:
    given = data.get("requestId", "")
    return given if isinstance(given, str | int) else ""


class NoData(Struct, frozen=True):
    """A request without data."""


class Container(Struct, frozen=True, rename="camel"):
    """A request about one of our agents."""

    container_id: str


class Image(Struct, frozen=True, rename="camel"):
    """A request about a conversation."""

    image_id: str


class RunningAgent(Struct, frozen=True, rename="camel"):
    """A request about the running side of a conversation."""

    agent_id: str


class ImageOrAgent(Struct, frozen=True, rename="camel"):
    """A request about a conversation, by its id or, from older clients, its agent's."""

    image_id: str | None = None
    agent_id: str | None = None


class ImageConfig(Struct, frozen=True):
    """Settings of a conversation; whatever else clients send belongs to the agent here."""

    name: str | None = None


class ImageCreate(Struct, frozen=True, rename="camel"):
    """A conversation to create."""

    container_id: str
    config: ImageConfig | None = None


class ImagesOf(Struct, frozen=True, rename="camel"):
    """Which conversations to list: all, or those with one agent."""

    container_id: str | None = None


class ImageUpdate(Struct, frozen=True, rename="camel"):
    """A conversation to rename."""

    image_id: str
    updates: ImageConfig


class SentPart(Struct, frozen=True, rename="camel"):
    """A piece of a user's message: text, an image, or another file."""

    type: str
    text: str = ""
    data: str = ""
    """An image or a file in base64. Its content determines its type; `mediaType` is not needed."""
    name: str = ""
    """The name of an image."""
    filename: str = ""
    """The name of another file."""


class MessageSend(ImageOrAgent, frozen=True, rename="camel", kw_only=True):
    """A user's message."""

    content: str | list[SentPart]


def text_of(content: str | list[SentPart]) -> str:
    """The text of a user's message; its parts are separate lines, as AgentX gives them to its models."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if part.type == "text" and part.text)


def files_of(content: str | list[SentPart]) -> list[SentPart]:
    """The images and files of a user's message; refuses other parts, which would otherwise be lost."""
    if isinstance(content, str):
        return []
    for part in content:
        if part.type not in {"text", "image", "file"}:
            raise InvalidRequest(
                f"Parts of type `{part.type[:_MOST_SHOWN]}` aren't supported. Send text, images and files.",
                param="content",
            )
    return [part for part in content if part.type != "text"]
