"""How a route is declared, and how its handler is called.

A handler is `async def name(request, *, <path parameters>, query: Struct, body: Struct) -> response`, with
`files: UploadedFiles` in place of a body where files are sent. What it takes and gives is read from its
annotations, once, at start: decoding, errors and OpenAPI all follow.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from threadkeep.domain.errors import Forbidden, StorageUnavailable, ThreadkeepError
from threadkeep.domain.ids import IdempotencyKey
from threadkeep.domain.key import Key, Scope
from threadkeep.domain.user import User
from threadkeep.handling.addresses import own_path
from threadkeep.handling.bodies import SMALL_BODY_BYTES, BodyLimits, read_json
from threadkeep.handling.cursors import Cursors
from threadkeep.handling.errors import ErrorShape, error_response, our_shape
from threadkeep.handling.idempotency import RepeatableRequest, idempotency_key, respond_once
from threadkeep.handling.large_bodies import Body
from threadkeep.handling.services import Services
from threadkeep.handling.stream import EventStream, LastingResponse
from threadkeep.handling.uploads import UploadedFiles
from threadkeep.ports.sign_in import CHECK_KEY_EVERY_S, check_every_s
from threadkeep.services.reach import check_reach
from threadkeep.wire.decoding import MOST_DECODED_AT_ONCE, decode_query
from threadkeep.wire.inside import INSIDE
from threadkeep.wire.json_shape import MOST_VALUES, MOST_VALUES_OF_A_HISTORY, JsonShape

log = logging.getLogger("threadkeep.http")

T = TypeVar("T")
B = TypeVar("B")


Stores = Literal["creation", "trial", "record", "text", "nothing"]
"""What a request adds outside turns: something new, which counts per minute; nothing, but with the work of a
creation, so that it counts, too; a record of what ran elsewhere; another text; or nothing, like turns,
decisions, and what stops or brings back something.
"""
SMALL_CHANGE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request as a handler gets it: who sends it, and what the handler may use."""

    user: User
    services: Services
    http: Request
    body_bytes: int = 0
    """The size of the request's body."""
    key: IdempotencyKey | None = None
    """The client's key of a request that may begin a turn, with which it is stored."""

    async def aside(self, read: Callable[[B], T], body: B) -> T:
        """Reads a body, in a thread if it is large, so that others don't wait for it."""
        if self.body_bytes <= MOST_DECODED_AT_ONCE:
            return read(body)
        return await asyncio.to_thread(read, body)

    @property
    def cursors(self) -> Cursors:
        """What signs the cursors of lists."""
        return Cursors(self.services.store.key)

    def link(self, path: str) -> str:
        """One of our paths for clients, even if we are mounted below another path."""
        return own_path(self.http, path)


@dataclass(frozen=True, slots=True)
class ViewResponse(Generic[T]):
    """A view as a response with a status or headers of its own."""

    body: T
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Document(StreamingResponse):
    """A text for people, made while it is sent."""

    media_types: ClassVar = ("text/markdown", "text/html")


class Attachment(Response):
    """A file to be saved."""

    media_types: ClassVar = ("*/*",)


class StreamedAttachment(StreamingResponse):
    """A file to be saved or shown, sent while it is read."""

    media_types: ClassVar = ("*/*",)

    def __init__(self, pieces: AsyncGenerator[bytes], *, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(pieces, status, headers)
        self._pieces = pieces

    async def stream_response(self, send: Send) -> None:
        """Sends the pieces, and closes what they are read from even if the reader leaves."""
        async with aclosing(self._pieces):
            await super().stream_response(send)


@dataclass(frozen=True, slots=True)
class Route:
    """One row of the table of routes.

    `errors` are those that it can raise beyond those of every route, `also` are further statuses of a
    success, `headers` are those that it reads and `gives` those of a success, each with its documentation.
    `scope` is what an API key needs for it: by default `read` for GET outside `/api/admin`, and
    `admin` for anything else.
    `accepted` are those types of its responses that come with 202, where a success also has another status.
    `opens_share` says that nobody has to sign in for it where the operator lets anyone open shares.
    `creates` says that it makes something new, so that it takes an `Idempotency-Key`; if it `shows_secret`,
    its response is not kept for repetitions. `begins_turn` says that a key is stored with the turn instead: a
    repetition follows that.
    `recognizes_users` says that it tells who asks although nobody has to sign in.
    `of_run` says that only the run of a program may call it, with the token that it was given.
    `within_agents` says whether a key that is limited to agents may call it: by default, unless it needs
    `admin` and names no agent.
    `acting` says whether a key that acts for an application's users may call it: if its scope covers it,
    never, or whatever its scope if it may delete users.
    `stores` says what it adds to what its user has: by default POST and PUT create something, PATCH changes a
    text, and nothing of `/api/admin` is a user's.
    `most_body_bytes` limits its body; if it is None, only the operator's `max_body_bytes` does, as for all.
    `body_has_files` also allows for the largest upload in it, as base64, and for a long history.
    `is_large` says that its response may have megabytes: a thread encodes it.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    tag: str
    status: int = 200
    errors: tuple[type[ThreadkeepError], ...] = ()
    also: tuple[int, ...] = ()
    accepted: tuple[type, ...] = ()
    scope: Scope | None = None
    within_agents: bool | None = None
    acting: Literal["within_scope", "never", "may_delete"] = "within_scope"
    creates: bool = False
    shows_secret: bool = False
    begins_turn: bool = False
    signed_in: bool = True
    recognizes_users: bool = False
    of_run: bool = False
    opens_share: bool = False
    stores: Stores | None = None
    most_body_bytes: int | None = SMALL_BODY_BYTES
    body_has_files: bool = False
    is_large: bool = False
    alias_of: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    gives: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def needed_scope(self) -> Scope:
        """What an API key needs for it."""
        only_reads = self.method == "GET" and not self.path.startswith("/api/admin/")
        return self.scope or (Scope.READ if only_reads else Scope.ADMIN)

    @property
    def added(self) -> "Stores":
        """What it adds to what its user has."""
        if self.stores is not None or self.path.startswith("/api/admin/"):
            return self.stores or "nothing"
        return (
            "creation" if self.method in {"POST", "PUT"} else "text" if self.method == "PATCH" else "nothing"
        )

    @property
    def counts_per_minute(self) -> bool:
        """Whether it takes one of its user's writes per minute."""
        return self.added in {"creation", "trial"}

    def needs_room(self, size: int) -> bool:
        """Whether a body of this size takes room; a small change never does, so that nobody is stuck."""
        is_new = self.method == "POST" and self.added in {"creation", "record"}
        return is_new or (self.added not in {"trial", "nothing"} and size > SMALL_CHANGE_BYTES)

    def check_key(self, key: Key) -> None:
        """Refuses a key with too little scope, or one for some agents where this concerns more than them."""
        if key.acts and self.acting == "never":
            raise Forbidden("An API key that acts for an application's users can't do this.")
        if not (key.may_delete and self.acting == "may_delete"):
            key.check_scope(self.needed_scope)
        is_within = self.needed_scope is not Scope.ADMIN or "{agent_id}" in self.path
        if not (is_within if self.within_agents is None else self.within_agents):
            key.check_not_limited()

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return self.documentation.partition("\n")[0]

    @property
    def documentation(self) -> str:
        """The handler's docstring; a route without one does not get into the table."""
        text = inspect.getdoc(self.handler)
        if not text:
            raise TypeError(f"{self.method} {self.path} has no documentation")
        return text


@dataclass(frozen=True, slots=True)
class Shape:
    """What a handler takes and gives."""

    path_names: tuple[str, ...]
    query: type[msgspec.Struct] | None
    body: type[msgspec.Struct] | None
    responses: tuple[type, ...]
    streams: bool
    files: bool
    media_types: tuple[str, ...] = ()


def shape_of(route: Route) -> Shape:
    """Reads a handler's annotations and checks that they fit the path."""
    shape = _shape_of_handler(route.handler)
    expected = {part[1:-1] for part in route.path.split("/") if part.startswith("{")}
    if set(shape.path_names) != expected:
        raise TypeError(f"{route.method} {route.path}: the handler takes {shape.path_names}, not {expected}")
    return shape


@cache
def _shape_of_handler(handler: Callable[..., Awaitable[Any]]) -> Shape:
    hints = get_type_hints(handler, include_extras=True)
    response = hints.pop("return")
    names = [name for name in inspect.signature(handler).parameters if name != "request"]
    path_names = tuple(name for name in names if name not in {"query", "body", "files"})
    kinds = list(_kinds(response))
    raw = [kind for kind in kinds if kind in {Document, Attachment, StreamedAttachment}]
    responses = tuple(kind for kind in kinds if kind is not EventStream and kind not in raw)
    streams, files = EventStream in kinds, "files" in names
    media_types = tuple(media_type for kind in raw for media_type in kind.media_types)
    return Shape(path_names, hints.get("query"), hints.get("body"), responses, streams, files, media_types)


def _kinds(response: Any) -> Iterator[Any]:
    """The types that an annotation allows, without None and without the wrapping."""
    if get_origin(response) in {ViewResponse, Union, UnionType}:
        for inner in get_args(response):
            yield from _kinds(inner)
    elif response is not type(None):
        yield response


Endpoint = Callable[[Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


def endpoint(
    route: Route,
    sign_in: Callable[[Request], Awaitable[User]],
    services: Callable[[], Awaitable[Services]],
    limits: BodyLimits,
    still_signed_in: Callable[[Request, User], Callable[[], Awaitable[None]]],
    shape: ErrorShape = our_shape,
) -> Endpoint:
    """The function that responds to a route's requests, whatever happens.

    `still_signed_in` makes what checks, while a stream is open, that its user may still read it; `shape` is
    how errors look.
    """
    handled = shape_of(route)
    body_decoder = msgspec.json.Decoder(handled.body) if handled.body else None
    most_values = MOST_VALUES_OF_A_HISTORY if route.body_has_files else MOST_VALUES
    most_bytes = limits.of_body(route.most_body_bytes, with_files=route.body_has_files)

    async def respond(request: Request) -> Response:
        # The headers say who sends the request: we read no body from a user who is not signed in.
        user = await sign_in(request)
        if user.key is not None:
            route.check_key(user.key)
            await check_reach((await services()).store, user, request.path_params)
        if route.counts_per_minute and INSIDE not in request.scope.get("extensions", ()):
            await (await services()).creations.take(user)
        # Files are read by their handler, once it knows that they are wanted.
        reads = route.method != "GET" and not handled.files
        with limits.large.of(user.id) as body:
            if reads:
                counted = JsonShape(most_values, most_text=limits.most_bytes)
                await read_json(request, body, counted, most_bytes, limits.wait_s)
            if route.needs_room(body.size):
                await (await services()).creations.check_room(user.id, body.size)
            return await handle(request, user, body)

    async def handle(request: Request, user: User, body: Body) -> Response:
        context = RequestContext(user, await services(), request, body.size)
        arguments: dict[str, Any] = dict(request.path_params)
        if handled.query:
            arguments["query"] = decode_query(request.scope["query_string"], handled.query)
        if body_decoder:
            arguments["body"] = await limits.large.decode(user.id, body, body_decoder)
        if handled.files:
            arguments["files"] = UploadedFiles(request, limits.most_upload_bytes, limits.wait_s)
        key = idempotency_key(request) if route.creates or route.begins_turn else None
        if key is None:
            return await carry_out(context, arguments)
        # Files are not compared: who repeats an upload may cut it into other parts.
        asked = f"{request.url.path}?{request.url.query}", await body.content()
        repeated = RepeatableRequest(user, key, *asked, keeps_response=not route.shows_secret)
        if route.begins_turn:
            begins = IdempotencyKey(key, await asyncio.to_thread(repeated.hash))  # the body may be long
            return await carry_out(replace(context, key=begins), arguments)
        return await respond_once(context.services, repeated, lambda: carry_out(context, arguments))

    async def carry_out(request: RequestContext, arguments: dict[str, Any]) -> Response:
        result = await route.handler(request, **arguments)
        if isinstance(result, LastingResponse):
            every_s = CHECK_KEY_EVERY_S if route.of_run else check_every_s(request.user)
            result.end_when_refused(still_signed_in(request.http, request.user), every_s)
        if isinstance(result, Response):
            return result
        status, headers = route.status, None
        if isinstance(result, ViewResponse):
            status, headers = result.status or status, result.headers
            result = result.body  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if result is None:
            return Response(status_code=204, headers=headers)
        content = await asyncio.to_thread(_encode, result) if route.is_large else _encode(result)
        # The line end is for terminals.
        return Response(content + b"\n", status, headers, media_type="application/json")

    async def respond_always(request: Request) -> Response:
        try:
            return await respond(request)
        except ThreadkeepError as exc:
            error = exc
            if isinstance(exc, StorageUnavailable):
                log.warning("%s %s: %s", route.method, route.path, exc.message)
        except Exception:
            log.exception("%s %s failed", route.method, route.path)
            error = ThreadkeepError(
                "The server failed unexpectedly. Its operator finds the request "
                f"{request.state.request_id} in the log."
            )
        return error_response(error, request_id=request.state.request_id, shape=shape)

    return respond_always
