"""What a server asks the user, and the answer: within limits, or it is declined.

A server asks in one of two ways. An older version holds its call open and sends a request meanwhile; a newer
version ends the call with an input-required result and is called again with the answers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import mcp_types as mcp
import msgspec
from pydantic import ValidationError

from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.text import storable
from threadkeep.ports.tools import GivenInput, InputRequest, InputRequired

MOST_MESSAGE_CHARACTERS = 4_000
MOST_SCHEMA_BYTES = 64 * 1024
MOST_URL_CHARACTERS = 2_000
MOST_REQUESTS = 20
MOST_KEY_CHARACTERS = 200
MOST_STATE_CHARACTERS = 64 * 1024

DECLINED = mcp.ElicitResult(action="decline")

_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)


class NotSupported(Exception):
    """The server asks for something we don't provide; the message says what."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user: to fill in a form of this schema, or to open an address."""

    message: str
    schema: Mapping[str, Any] | None = None
    url: str | None = None


# The schemas that MCP allows, with the names on the wire. Unlisted fields are dropped.


class _Choice(msgspec.Struct, omit_defaults=True):
    const: str
    title: str | None = None


class _Items(msgspec.Struct, omit_defaults=True):
    type: Literal["string"] | None = None
    enum: list[str] | None = None
    anyOf: list[_Choice] | None = None  # noqa: N815


class _Property(msgspec.Struct, omit_defaults=True):
    type: Literal["string", "number", "integer", "boolean", "array"]
    title: str | None = None
    description: str | None = None
    default: bool | int | float | str | list[str] | None = None
    enum: list[str] | None = None
    enumNames: list[str] | None = None  # noqa: N815
    oneOf: list[_Choice] | None = None  # noqa: N815
    format: str | None = None
    minLength: int | None = None  # noqa: N815
    maxLength: int | None = None  # noqa: N815
    minimum: int | float | None = None
    maximum: int | float | None = None
    items: _Items | None = None
    minItems: int | None = None  # noqa: N815
    maxItems: int | None = None  # noqa: N815

    @property
    def is_allowed(self) -> bool:
        """Whether it is one value, or several out of a list."""
        if self.type != "array":
            return self.items is None
        return self.items is not None and bool(self.items.enum or self.items.anyOf)


class _Schema(msgspec.Struct):
    type: Literal["object"]
    properties: dict[str, _Property]
    required: list[str] = []


class _State(msgspec.Struct, omit_defaults=True):
    """What continuing a call on any node needs: the server's own state, and what it asked."""

    state: str | None = None
    forms: list[str] = []
    declined: list[str] = []
    begins_again: bool = False
    """The server takes no answers: it is called again as if for the first time."""


_decode_state = msgspec.json.Decoder(_State).decode


def question_of(params: mcp.ElicitRequestParams) -> Question | None:
    """The question for the user; None if it must not be asked like this."""
    message = storable(params.message)
    if len(message) > MOST_MESSAGE_CHARACTERS:
        return None
    if isinstance(params, mcp.ElicitRequestURLParams):
        return Question(message, url=params.url) if _is_address(params.url) else None
    schema = _flat_schema(params.requested_schema)
    return None if schema is None else Question(message, schema)


def elicit_result(decision: Decision | None, *, is_form: bool) -> mcp.ElicitResult:
    """A decision in the form for servers; None means that there is none."""
    if decision is None or decision.action is ApprovalAction.EXPIRE:
        return mcp.ElicitResult(action="cancel")
    if decision.action not in {ApprovalAction.ANSWER, ApprovalAction.ALLOW}:
        return DECLINED
    if not is_form:
        return mcp.ElicitResult(action="accept")
    try:
        return mcp.ElicitResult(action="accept", content=decision.content or {})
    except ValidationError:  # no form has such an answer
        return DECLINED


def input_required(result: Mapping[str, Any]) -> InputRequired | None:
    """What a server needs before it continues a call; None for any other result.

    ValueError if the result is malformed, NotSupported if it needs what only a model or a disk has.
    """
    if result.get("resultType") != "input_required":
        return None
    given = mcp.InputRequiredResult.model_validate(result, by_name=False)
    asked = given.input_requests or {}
    if len(asked) > MOST_REQUESTS or any(len(key) > MOST_KEY_CHARACTERS for key in asked):
        raise NotSupported("The server requested too much at once.")
    if len(given.request_state or "") > MOST_STATE_CHARACTERS:
        raise NotSupported("The server asked Threadkeep to store too much state.")
    params: dict[str, mcp.ElicitRequestParams] = {}
    for key, request in asked.items():
        if not isinstance(request, mcp.ElicitRequest):
            raise NotSupported(
                f"The server requested something Threadkeep doesn't support: {request.method}."
            )
        params[key] = request.params
    return _asking(params, _State(state=given.request_state))


def addresses_required(error: mcp.ErrorData) -> InputRequired | None:
    """The addresses that the user has to open before a call can be made, if the error says so."""
    if error.code != mcp.URL_ELICITATION_REQUIRED:
        return None
    try:
        given = mcp.ElicitationRequiredErrorData.model_validate(error.data, by_name=False)
    except ValidationError:
        return None
    params = {str(number): it for number, it in enumerate(given.elicitations[:MOST_REQUESTS])}
    asking = _asking(dict(params), _State(begins_again=True))
    return asking if len(asking.requests) == len(given.elicitations) > 0 else None


def continued(params: mcp.CallToolRequestParams, given: GivenInput) -> mcp.CallToolRequestParams | None:
    """A call with the answers that it asked for; None if the user doesn't want it to continue."""
    state = _decode_state(given.state)
    results = {
        key: elicit_result(decision, is_form=key in state.forms) for key, decision in given.decisions.items()
    }
    if state.begins_again:
        return params if all(result.action == "accept" for result in results.values()) else None
    responses: mcp.InputResponses = {**results, **dict.fromkeys(state.declined, DECLINED)}
    answered = {"input_responses": responses or None, "request_state": state.state}
    return params.model_copy(update=answered)


def _asking(params: Mapping[str, mcp.ElicitRequestParams], state: _State) -> InputRequired:
    requests: list[InputRequest] = []
    for key, asked in params.items():
        question = question_of(asked)
        if question is None:
            state.declined.append(key)
            continue
        if question.schema is not None:
            state.forms.append(key)
        requests.append(InputRequest(key, question.message, question.schema, question.url))
    return InputRequired(tuple(requests), msgspec.json.encode(state).decode())


def _flat_schema(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A form's schema reduced to what forms may have; None if it is not flat, or too large."""
    try:
        encoded = msgspec.json.encode(given)
        schema = msgspec.json.decode(encoded, type=_Schema)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return None
    if len(encoded) > MOST_SCHEMA_BYTES or b"\\u0000" in encoded:
        return None
    if not all(it.is_allowed for it in schema.properties.values()):
        return None
    return msgspec.to_builtins(schema)


def _is_address(url: str) -> bool:
    """Whether a person can be sent to this address, and it does not look like another one."""
    if len(url) > MOST_URL_CHARACTERS or not _URL.fullmatch(url) or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return False
