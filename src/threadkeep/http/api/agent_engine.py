"""What runs an agent, as requests say it: our own loop with its settings, or another server."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from threadkeep.domain.engines.remote_agent import RemoteAgent
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.secret import MASK, Secret


class EngineBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A server that speaks AG-UI and runs the agent."""

    kind: Annotated[Literal["ag-ui"], Meta(description="The protocol that the server speaks: AG-UI.")]
    url: Annotated[
        str,
        Meta(
            examples=["https://agent.example/ag-ui"],
            description="The address that runs are posted to, as MCP servers' addresses are checked.",
        ),
    ]
    headers: Annotated[
        dict[str, str],
        Meta(
            description="Headers of each request. The values are secrets: a mask keeps the stored value "
            "while the scheme, host and port of `url` stay the same; a change of those drops it."
        ),
    ] = {}
    repeat: Annotated[
        bool,
        Meta(
            description="Whether a run that was cut off, by the server or the network, may be made again "
            "with the same `runId`. Otherwise the reply ends there and keeps its text."
        ),
    ] = False


def remote_from_body(body: EngineBody | None, kept: RemoteAgent | None) -> RemoteAgent | None:
    """The server in a request; a mask stands for the stored secret, which no other origin receives."""
    if body is None:
        return None
    given = RemoteAgent(body.url, {}, body.repeat)
    has_moved = kept is not None and kept.origin != given.origin
    known: Mapping[str, Secret] = kept.headers if kept is not None and not has_moved else {}
    return RemoteAgent(body.url, _secrets(body.headers, known, drops=has_moved), body.repeat)


def _secrets(given: Mapping[str, str], known: Mapping[str, Secret], *, drops: bool) -> dict[str, Secret]:
    headers: dict[str, Secret] = {}
    for name, value in given.items():
        if value != MASK:
            headers[name] = Secret(value)
        elif name in known:
            headers[name] = known[name]
        elif not drops:
            raise InvalidRequest(
                "There is no stored value for this header. Send the value itself.",
                param=f"engine.headers.{name}",
            )
    return headers


def remote_to_body(remote: RemoteAgent | None) -> EngineBody | None:
    """Where another server runs an agent, in the format of requests, with masked secrets."""
    if remote is None:
        return None
    return EngineBody(
        kind="ag-ui", url=remote.url, headers=dict.fromkeys(remote.headers, MASK), repeat=remote.repeat
    )
