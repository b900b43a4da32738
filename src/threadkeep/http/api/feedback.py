"""Feedback over HTTP."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, field

from threadkeep.domain.feedback import FeedbackFilter, RatedReply, Rating
from threadkeep.handling.moments import Moment, milliseconds
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.feedback import FeedbackView, feedback_view
from threadkeep.wire.messages import cost_view
from threadkeep.wire.rated_answers import RatedAnswerView
from threadkeep.wire.view import PageView, rfc3339


class FeedbackBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The rating; it replaces an earlier one with its note."""

    rating: Annotated[Rating | None, Meta(description="`null` removes the rating and its note.")]
    note: Annotated[str, Meta(description="Why you rate it so, at most 4,000 characters.")] = ""
    share_text: Annotated[
        bool,
        Meta(
            description="Whether the agent's owner may read this turn: everything that the model received, "
            "including earlier messages, and the answer."
        ),
    ] = False


class FeedbackQuery(PageQuery, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which ratings to list."""

    rating: Annotated[Rating | None, Meta(description="Only answers that were rated like this.")] = None
    model: Annotated[
        Annotated[str, Meta(max_length=200)] | None, Meta(description="Only answers of this model.")
    ] = None
    since: Annotated[Moment | None, Meta(description="Ratings at or after this time (RFC 3339).")] = field(
        name="from", default=None
    )
    until: Annotated[Moment | None, Meta(description="Only ratings before this time (RFC 3339).")] = field(
        name="to", default=None
    )


async def rate_message(
    request: RequestContext, *, message_id: str, body: FeedbackBody
) -> FeedbackView | None:
    """Rate a finished answer in one of your conversations; 204 if `rating` is null."""
    rated = await request.services.feedback.rate(
        request.user, message_id, body.rating, note=body.note, share_text=body.share_text
    )
    return feedback_view(rated) if rated else None


async def delete_feedback(request: RequestContext, *, message_id: str) -> None:
    """Remove your rating of an answer, with its note."""
    await request.services.feedback.rate(request.user, message_id, None, note="", share_text=False)


async def list_feedback(
    request: RequestContext, *, agent_id: str, query: FeedbackQuery
) -> PageView[RatedAnswerView]:
    """List users' ratings of an agent's answers, newest first; for the agent's owner and admins.

    Only the owner reads texts, and only of turns whose users share them. Admins own the agents without an
    owner, such as the default one.
    """
    since, until = milliseconds(query.since, "from"), milliseconds(query.until, "to")
    which = FeedbackFilter(rating=query.rating, model=query.model, since=since, until=until)
    pager = Pager(request.cursors, request.user, f"feedback {agent_id.lower()} {which}", query)
    found = await request.services.feedback.page(
        request.user,
        agent_id,
        which,
        before=pager.after(tuple[int, str]),
        offset=pager.offset,
        limit=pager.fetch_limit,
    )
    return pager.page(
        found,
        lambda it: (it.feedback.updated_at, it.feedback.message_id),
        lambda items: [_rated_view(request, it) for it in items],
    )


def _rated_view(request: RequestContext, rated: RatedReply) -> RatedAnswerView:
    feedback = rated.feedback
    is_readable = rated.reply is not None
    return RatedAnswerView(
        message_id=feedback.message_id,
        rating=feedback.rating,
        note=feedback.note,
        share_text=feedback.share_text,
        model=rated.model,
        cost=cost_view(rated.usage.cost if rated.usage else None),
        answered_at=rfc3339(rated.replied_at),
        rated_at=rfc3339(feedback.updated_at),
        own=rated.user_id == request.user.id,
        turn_id=rated.turn_id if is_readable and rated.turn_id else UNSET,
        question=UNSET if rated.question is None else rated.question,
        answer=UNSET if rated.reply is None else rated.reply,
    )
