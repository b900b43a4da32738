"""Conversations: what may be added, and by whose title they go."""

import pytest

from tests.making import ALICE, NOW
from threadkeep.domain.briefing import Briefing, Priority
from threadkeep.domain.conversation import Conversation, TitleSource
from threadkeep.domain.errors import IllegalTransition, InvalidRequest, TurnInProgress
from threadkeep.domain.ids import AgentId, BriefingId, UserId, new_uuid
from threadkeep.domain.message import MessageRole, MessageStatus
from threadkeep.domain.parts import text_parts
from threadkeep.domain.turn import TurnStatus


def conversation() -> Conversation:
    return Conversation.start(UserId("alice"), AgentId(new_uuid()), 1)


def test_turn_adds_question_and_pending_reply():
    begun = conversation().begin_turn("why?", 5)
    assert begun.user_message
    assert (begun.user_message.seq, begun.assistant_message.seq) == (1, 2)
    assert begun.user_message.status is MessageStatus.COMPLETED
    assert begun.assistant_message.status is MessageStatus.PENDING
    assert begun.conversation.active_turn_id == begun.turn.id
    assert begun.conversation.updated_at == begun.conversation.last_message_at == 5


def test_second_turn_is_refused_with_the_id_of_the_first():
    begun = conversation().begin_turn("why?", 5)
    with pytest.raises(TurnInProgress) as refused:
        begun.conversation.begin_turn("and?", 6)
    assert refused.value.details == {"turnId": begun.turn.id}


@pytest.mark.parametrize("status", [MessageStatus.COMPLETED, MessageStatus.FAILED, MessageStatus.CANCELLED])
def test_turn_ends_as_its_reply_does_and_frees_the_conversation(status: MessageStatus):
    begun = conversation().begin_turn("why?", 5)
    reply = begun.assistant_message.finish(status, text_parts("because"), 9)
    ended = begun.conversation.end_turn(begun.turn, reply, 9)
    assert ended.turn.status is TurnStatus(status.value)
    assert ended.conversation.active_turn_id is None
    assert ended.conversation.begin_turn("and?", 10).assistant_message.seq == 4
    with pytest.raises(IllegalTransition):
        ended.conversation.end_turn(begun.turn, reply, 10)


def test_card_can_be_added_while_a_turn_runs():
    begun = conversation().begin_turn("why?", 5)
    briefing = Briefing(
        BriefingId(new_uuid()),
        begun.conversation.agent_id,
        UserId("alice"),
        "t",
        "s",
        Priority.P1,
        None,
        (),
        4,
    )
    grown, card = begun.conversation.add_card(briefing, 6)
    assert (card.seq, card.role, card.content) == (3, MessageRole.SYSTEM, briefing.card())
    assert grown.active_turn_id == begun.turn.id


def test_users_title_is_theirs_and_does_not_move_the_conversation():
    renamed = conversation().rename("  合同咨询 ")
    assert (renamed.title, renamed.title_source, renamed.updated_at) == ("合同咨询", TitleSource.USER, 1)
    assert renamed.rename(None).title_source is None


@pytest.mark.parametrize("title", ["", " ", "\u3000\u200b", "x" * 201, "a\x00b"])
def test_bad_titles_are_refused(title: str):
    with pytest.raises(InvalidRequest) as refused:
        conversation().rename(title)
    assert refused.value.param == "title"


def test_sessions_cannot_be_guessed():
    assert len({conversation().session_id for _ in range(100)}) == 100
    assert len(conversation().session_id.reveal()) >= 43


def test_title_is_one_line():
    conversation = Conversation.start(ALICE, AgentId(new_uuid()), NOW, title=" First\nsecond\r\n\x85 third ")
    assert conversation.title == "First second third"
    assert conversation.rename("a\u2029b").title == "a b"
    with pytest.raises(InvalidRequest):
        conversation.rename("\n \u2028")
