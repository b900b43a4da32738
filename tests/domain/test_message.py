"""Messages: states, content and roles."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.errors import (
    IllegalTransition,
    InvalidRequest,
    MessageContentRequired,
    MessageTooLong,
    ThreadkeepError,
)
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, new_uuid
from threadkeep.domain.message import Message, MessageRole, MessageStatus, Usage, check_user_content
from threadkeep.domain.money import Cost
from threadkeep.domain.parts import FilePart, text_parts
from threadkeep.domain.text import BLANK_CHARACTERS

PENDING, STREAMING, COMPLETED, FAILED, CANCELLED, OVERWRITTEN = MessageStatus
LEGAL = {
    (PENDING, STREAMING), (PENDING, FAILED), (PENDING, CANCELLED),
    (STREAMING, COMPLETED), (STREAMING, FAILED), (STREAMING, CANCELLED),
    (COMPLETED, OVERWRITTEN), (FAILED, OVERWRITTEN), (CANCELLED, OVERWRITTEN),
}  # fmt: skip


def message(
    status: MessageStatus = COMPLETED, content: str = "x", role: MessageRole = MessageRole.ASSISTANT
) -> Message:
    on_path = status is not OVERWRITTEN
    return Message(
        id=MessageId(new_uuid()),
        conversation_id=ConversationId(new_uuid()),
        seq=1,
        turn_id=None,
        role=role,
        parts=text_parts(content),
        status=status if on_path else COMPLETED,
        created_at=1,
        on_path=on_path,
    )


@pytest.mark.parametrize(("before", "after"), [*product(MessageStatus, repeat=2)])
def test_only_the_legal_steps_are_possible(before: MessageStatus, after: MessageStatus):
    if (before, after) in LEGAL:
        assert message(before).become(after).shown_status is after
    else:
        with pytest.raises(IllegalTransition):
            message(before).become(after)


@pytest.mark.parametrize("status", [PENDING, STREAMING, OVERWRITTEN])
def test_finish_takes_an_end_only(status: MessageStatus):
    with pytest.raises(IllegalTransition):
        message(STREAMING).finish(status, text_parts("x"), 2)


def test_finished_reply_cannot_be_finished_again():
    done = message(PENDING, "").finish(COMPLETED, text_parts("answer"), 2, usage=Usage(3, 4))
    assert (done.content, done.token_count, done.completed_at) == ("answer", 4, 2)
    with pytest.raises(IllegalTransition):
        done.finish(CANCELLED, text_parts("other"), 3)


def test_empty_completed_reply_is_refused():
    with pytest.raises(MessageContentRequired):
        message(STREAMING, "").finish(COMPLETED, text_parts(" \n"), 2)


@pytest.mark.parametrize("status", [PENDING, STREAMING, FAILED, CANCELLED])
def test_reply_that_is_not_completed_may_be_empty(status: MessageStatus):
    assert message(status, "").content == ""


@pytest.mark.parametrize("status", [COMPLETED, FAILED, CANCELLED])
def test_message_that_leaves_the_path_reads_as_overwritten_and_keeps_the_status_it_ended_in(
    status: MessageStatus,
):
    overwritten = message(status).become(OVERWRITTEN)
    assert (overwritten.shown_status, overwritten.status) == (OVERWRITTEN, status)
    assert replace(overwritten, on_path=True).shown_status is status
    with pytest.raises(IllegalTransition):
        replace(overwritten, status=OVERWRITTEN)


def test_users_message_with_a_file_needs_no_text():
    file = FilePart(file_id=PayloadId(new_uuid()))
    asked = replace(message(role=MessageRole.USER), parts=(file,))
    assert (asked.content, asked.artifact_ids) == ("", ())
    with pytest.raises(MessageContentRequired):
        replace(message(role=MessageRole.ASSISTANT), parts=(file,))


@given(st.text(st.sampled_from(BLANK_CHARACTERS), max_size=30), st.sampled_from(MessageRole))
def test_blank_content_is_refused_for_every_role(blank: str, role: MessageRole):
    with pytest.raises(MessageContentRequired):
        message(COMPLETED, blank, role)
    with pytest.raises(MessageContentRequired):
        check_user_content(blank, most=0)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1))
def test_whatever_shows_something_is_accepted_whole(text: str):
    if text.strip(BLANK_CHARACTERS):
        assert check_user_content(text, most=0) == text


@pytest.mark.parametrize("role", ["tool", "USER", "", "function"])
def test_unknown_roles_are_refused(role: str):
    with pytest.raises(InvalidRequest, match="assistant"):
        MessageRole(role)
    with pytest.raises(InvalidRequest):
        message(role=role)  # pyright: ignore[reportArgumentType]


def test_limit_counts_characters_and_zero_means_none():
    assert check_user_content("字" * 10_000, most=10_000)
    with pytest.raises(MessageTooLong):
        check_user_content("字" * 10_001, most=10_000)
    assert check_user_content("字" * 1_000_000, most=0)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
def test_text_that_no_database_keeps_is_refused(text: str):
    with pytest.raises(ThreadkeepError, match=r"NUL|surrogate"):
        check_user_content(text, most=0)


def test_the_sum_of_usages_costs_their_sum() -> None:
    one, other = Usage(3, 4, cost=Cost("0.1", "USD")), Usage(5, 6, cost=Cost("0.2", "USD"))
    assert (one + other).cost == Cost("0.30", "USD")


def test_what_used_nothing_costs_nothing() -> None:
    paid = Usage(3, 4, cost=Cost("0.1", "USD"))
    assert (Usage(0, 0) + paid).cost == (paid + Usage(0, 0)).cost == paid.cost


@pytest.mark.parametrize("other", [None, Cost("1.00", "EUR")])
def test_a_sum_with_an_unknown_cost_or_another_currency_has_no_cost(other: Cost | None) -> None:
    one, two = Usage(3, 4, cost=Cost("0.1", "USD")), Usage(5, 6, cost=other)
    assert (one + two).cost is None and (two + one).cost is None
