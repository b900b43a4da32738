"""One request to another server: pinned to the address that was checked, bounded, without redirects."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec

from threadkeep.mcp.checked_transport import CheckedTransport
from threadkeep.mcp.processes.lines import Pace
from threadkeep.networks import Network
from threadkeep.remote_agents.errors import RemoteFailed, RunCutOff
from threadkeep.remote_agents.frames import Frame, decode_frame
from threadkeep.remote_agents.limits import RunLimits
from threadkeep.sse import MEDIA_TYPE, EventReader, EventTooLong

GARBAGE = "The agent's server doesn't follow AG-UI: it sent an event that can't be read."


@dataclass(frozen=True, slots=True)
class Reach:
    """Which addresses the operator allows."""

    allow_private: bool = False
    denied: Sequence[Network] = ()


async def frames_of(
    url: str, headers: Mapping[str, str], body: bytes, reach: Reach, limits: RunLimits
) -> AsyncGenerator[Frame]:
    """The events of a run as they arrive; raises RemoteFailed. Closed early, it closes the connection."""
    events, pace, size = EventReader(limits.frame_bytes), Pace(), 0
    async with _response(url, headers, body, reach, limits) as response:
        try:
            async for chunk in response.aiter_raw():
                await pace.spend(len(chunk))
                size += len(chunk)
                if size > limits.run_bytes:
                    raise RemoteFailed(
                        f"The agent's server sent more than {limits.run_bytes:,} bytes for one run."
                    )
                for event in events.feed(chunk):
                    yield _decoded(event.data)
            for event in events.finish():
                yield _decoded(event.data)
        except EventTooLong:
            raise RemoteFailed(
                f"The agent's server sent an event of more than {limits.frame_bytes:,} bytes."
            ) from None
        except httpx2.ReadTimeout:
            raise RunCutOff(f"The agent's server sent nothing for {limits.silence_s:g} s.") from None
        except httpx2.HTTPError:
            raise RunCutOff("The connection to the agent's server broke off.") from None


def _decoded(data: bytes) -> Frame:
    try:
        return decode_frame(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RemoteFailed(GARBAGE) from None


@asynccontextmanager
async def _response(
    url: str, headers: Mapping[str, str], body: bytes, reach: Reach, limits: RunLimits
) -> AsyncGenerator[httpx2.Response]:
    ours = {"Accept": MEDIA_TYPE, "Content-Type": "application/json", "Accept-Encoding": "identity"}
    timeout = httpx2.Timeout(limits.connect_s, read=limits.silence_s, write=limits.silence_s)
    transport = CheckedTransport(reach.allow_private, reach.denied)
    async with httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False) as client:
        request = client.build_request("POST", url, content=body, headers={**headers, **ours})
        try:
            response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
            why = str(exc.__cause__) if isinstance(exc.__cause__, PermissionError) else "It can't be reached."
            raise RemoteFailed(
                f"The agent's server didn't get the message. {why}", is_retryable=True
            ) from None
        except httpx2.HTTPError:
            raise RunCutOff("The agent's server didn't answer.") from None
        try:
            _check(response)
            yield response
        finally:
            await response.aclose()


def _check(response: httpx2.Response) -> None:
    """Refuses a response that is no stream of events; what else is in it nobody needs to see."""
    status = response.status_code
    if status != 200:
        raise RemoteFailed(_refusal(status), is_retryable=status >= 500 or status == 429)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        shown = kind if kind.isascii() and kind.isprintable() and 0 < len(kind) < 60 else "something else"
        raise RemoteFailed(f"The agent's server answered with {shown} instead of a stream of events.")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise RemoteFailed("The agent's server compressed its response, which Threadkeep didn't ask for.")


def _refusal(status: int) -> str:
    match status:
        case 401 | 403:
            why = "The agent's owner can correct its headers."
        case 404 | 405:
            why = "There is no AG-UI agent at this address."
        case 413:
            why = "The conversation is too long for it."
        case _ if 300 <= status < 400:
            why = "It redirects, which Threadkeep doesn't follow. The agent's owner can correct the address."
        case _ if status >= 500:
            why = "It failed."
        case _:
            why = "It didn't accept the run."
    return f"The agent's server answered with HTTP status {status}. {why}"
