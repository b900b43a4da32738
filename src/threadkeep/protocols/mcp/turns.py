"""Turns as tools return them: sent, followed and answered."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from threadkeep.aside import LogWork
from threadkeep.domain.approval import Approval, ApprovalAction, ApprovalKind, Decision, OpenApproval
from threadkeep.domain.errors import ApprovalAnswered, ApprovalExpired, ApprovalNotFound, TurnNotFound
from threadkeep.domain.events import LogChunk
from threadkeep.domain.message import Message
from threadkeep.domain.turn import ENDS, Turn, TurnStatus
from threadkeep.handling.routing import RequestContext
from threadkeep.log.format import decode_chunk
from threadkeep.log.replies import written_so_far
from threadkeep.program_log import add_to_subject
from threadkeep.protocols.narrator import Called, Narration, Narrator, StepBegan
from threadkeep.services.reach import check_reach
from threadkeep.wire.approvals import ApprovalView, approval_view
from threadkeep.wire.view import Id, View

ARTIFACTS = "threadkeep://artifacts/"

Report = Callable[[int, str], Awaitable[None]]
"""Tells the client about progress: the number of the last event that says something, and what is new."""


class TurnView(View, frozen=True, kw_only=True):
    """A turn: the reply, or what it waits for."""

    status: Annotated[
        TurnStatus,
        Meta(
            description="WAITING: its user must decide on `approvals` (tool `answer_approval`). RUNNING: it "
            "goes on without this call; read the conversation later."
        ),
    ]
    conversation_id: Annotated[Id, Meta(description="Send it with the next message of this conversation.")]
    turn_id: Id
    content: Annotated[str, Meta(description="The reply, as far as it goes.")]
    artifacts: Annotated[Sequence[str], Meta(description="URIs of files that tools made, as resources.")]
    approvals: Sequence[ApprovalView] | UnsetType = UNSET
    error: str | UnsetType = UNSET


async def follow(request: RequestContext, turn: Turn, report: Report, seen: int = 0) -> TurnStatus | None:
    """Follows a turn until it ends or waits, reporting what comes after an event.

    Returns WAITING, or RUNNING if this node can't tell how it ends; None if it has ended.
    """
    add_to_subject(conversation_id=turn.conversation_id, turn_id=turn.id)
    log = await request.services.turns.follow(turn, 0)
    if log is None:
        return None
    narrator, work = news(), LogWork()

    def narrated(chunks: Sequence[LogChunk]) -> Sequence[tuple[int, str]]:
        events = (event for chunk in chunks for event in decode_chunk(chunk.events))
        told = ((event.seq, "".join(narrator.narrate(event.body))) for event in events)
        return [(seq, text) for seq, text in told if seq > seen and text]

    async with log:
        async for chunks in log:
            if told := await work.take(narrated, chunks, at_end=log.has_ended):
                await report(told[-1][0], "".join(news for _, news in told))
            # While a tool's server asks, the turn goes on; the answer is decided first and logged later.
            has_form = any(it.request.kind is ApprovalKind.ELICITATION for it in narrator.open_requests)
            if log.is_paused or (has_form and await request.services.approvals.open(request.user, turn)):
                return TurnStatus.WAITING
        return None if log.has_ended else TurnStatus.RUNNING


def news() -> Narrator[str]:
    """What a turn's events mean to somebody who waits for the reply: texts, the names of tools and steps."""
    return Narrator(_begun, text=lambda text: (text,))


def _begun(narrated: Narration) -> Sequence[str]:
    match narrated:
        case Called(event):
            return (f"\n[{event.tool_name}]\n",)
        case StepBegan(event):
            return (f"\n[{event.title or event.name}]\n",)
        case _:
            return ()


async def turn_view(
    request: RequestContext, turn: Turn, status: TurnStatus | None, waiting: Sequence[OpenApproval]
) -> TurnView:
    """A turn that was followed."""
    reply = await _reply(request, turn)
    return TurnView(
        status=status or ENDS.get(reply.status, TurnStatus.RUNNING),
        conversation_id=turn.conversation_id,
        turn_id=turn.id,
        content=reply.text,
        artifacts=artifact_uris(reply),
        approvals=[approval_view(it) for it in waiting] if waiting else UNSET,
        error=reply.error.message if reply.error else UNSET,
    )


def artifact_uris(message: Message) -> list[str]:
    """The files that tools made for a message, as resources."""
    return [f"{ARTIFACTS}{it}" for it in message.artifact_ids]


async def _reply(request: RequestContext, turn: Turn) -> Message:
    """A turn's reply, as far as it goes."""
    store = request.services.store
    reply = await store.messages.get(turn.conversation_id, turn.assistant_message_id)
    if reply is None:
        raise TurnNotFound
    return await written_so_far(store.log, reply)


async def own_turn(request: RequestContext, turn_id: str) -> Turn:
    """One of the user's turns, within the reach of their key."""
    await check_reach(request.services.store, request.user, {"turn_id": turn_id})
    return await request.services.turns.get(request.user, turn_id)


async def last_event_of(request: RequestContext, turn: Turn) -> int:
    """The number of the last event so far: what a client has received before it answers."""
    return await request.services.store.log.last_seq(turn.id)


async def asked(request: RequestContext, turn: Turn, request_id: str) -> Approval:
    """A turn's request, open or decided."""
    found = await request.services.approvals.about(turn, request_id, ApprovalAction.DENY)
    if found is None:
        raise ApprovalNotFound
    return found


async def decide_all(request: RequestContext, turn: Turn, decisions: Mapping[str, Decision]) -> None:
    """Decides requests; one that somebody has decided elsewhere, or that has expired, stays as it is."""
    for request_id, decision in decisions.items():
        with suppress(ApprovalAnswered, ApprovalExpired):
            await request.services.approvals.decide(request.user, turn.id, request_id, decision)
