"""Titles by the model: asked once, never over a user's own, never moving a conversation."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial

import pytest

from tests.conftest import ONLY_SQLITE
from tests.engine.in_memory import InMemoryGateway, InMemoryModels
from tests.making import ALICE, keep_agent, keep_conversation, keep_turn, spending_of
from threadkeep.context.completion import Complete
from threadkeep.domain.agent import Agent, AgentSettings
from threadkeep.domain.conversation import Conversation, TitleSource
from threadkeep.domain.ids import UserId
from threadkeep.domain.ledger import UsageFilter
from threadkeep.domain.money import Purpose
from threadkeep.domain.user import User
from threadkeep.engine.completion import complete
from threadkeep.jobs.titles import Titles, title_job
from threadkeep.loops import Loops
from threadkeep.ports.gateway import GatewayError, ModelEvent, ModelRequest, ModelStopped, TextDelta
from threadkeep.ports.models import ConnectedModel
from threadkeep.services.history import History
from threadkeep.services.model_choice import ModelChoice
from threadkeep.storage.store import Store


@pytest.fixture
async def history(store: Store) -> AsyncGenerator[History]:
    history = History(store, Loops())
    yield history
    await history.close()


def titles_of(store: Store, history: History, gateway: InMemoryGateway | None) -> Titles:
    models = InMemoryModels(gateway)

    async def complete_for(
        model: ConnectedModel, agent: Agent, user_id: UserId, key_id: str | None
    ) -> Complete:
        account = spending_of(store, models).account(User(user_id), agent, Purpose.TITLE)
        return partial(complete, model, account, timeout_s=agent.settings.generation_timeout_s)

    return Titles(store, ModelChoice(models).own, lambda it: history.follow(it.id), complete_for)


def reply_of(*texts: str) -> list[ModelEvent]:
    return [*map(TextDelta, texts), ModelStopped("end_turn")]


async def keep_derived(store: Store, agent: Agent | None = None) -> Conversation:
    conversation = await keep_conversation(store, agent or await keep_agent(store))
    conversation = await keep_turn(store, conversation, "请分析这份合同", "有三个风险。")
    derived = await store.conversations.update(
        ALICE, conversation.id, lambda it: replace(it, title="分析", title_source=TitleSource.DERIVED)
    )
    assert derived
    return derived


async def title_of(store: Store, conversation: Conversation) -> tuple[str | None, TitleSource | None]:
    found = await store.conversations.get(ALICE, conversation.id)
    assert found
    assert found.updated_at == conversation.updated_at
    return found.title, found.title_source


async def test_derived_title_is_bettered_once(store: Store, history: History):
    conversation = await keep_derived(store)
    gateway = InMemoryGateway(
        reply_of(" \n", "\u201c合同风险", "分析\u201d。\nmore"), reply_of("never asked")
    )
    titles = titles_of(store, history, gateway)
    await titles.give(title_job(conversation))
    await titles.give(title_job(conversation))
    assert len(gateway.requests) == 1
    assert await title_of(store, conversation) == ("合同风险分析", TitleSource.MODEL)


@ONLY_SQLITE
@pytest.mark.parametrize("reply", [[], reply_of(""), reply_of(" \n ", "\u200b"), reply_of('""')])
async def test_model_without_a_title_leaves_the_one_there_is(
    store: Store, history: History, reply: list[ModelEvent]
):
    conversation = await keep_derived(store)
    await titles_of(store, history, InMemoryGateway(reply)).give(title_job(conversation))
    assert await title_of(store, conversation) == ("分析", TitleSource.DERIVED)


@ONLY_SQLITE
async def test_long_title_is_cut(store: Store, history: History):
    conversation = await keep_derived(store)
    await titles_of(store, history, InMemoryGateway(reply_of("长" * 80))).give(title_job(conversation))
    assert await title_of(store, conversation) == ("长" * 49 + "…", TitleSource.MODEL)


async def test_title_that_the_user_gives_meanwhile_stays(store: Store, history: History):
    conversation = await keep_derived(store)

    class Renaming(InMemoryGateway):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            await store.conversations.update(ALICE, conversation.id, lambda it: it.rename("Mine"))
            yield TextDelta("The model's")

    await titles_of(store, history, Renaming()).give(title_job(conversation))
    assert await title_of(store, conversation) == ("Mine", TitleSource.USER)


async def test_title_of_the_model_can_be_searched_at_once(store: Store, history: History):
    conversation = await keep_derived(store)
    await history.follow(conversation.id)
    await titles_of(store, history, InMemoryGateway(reply_of("货运估价"))).give(title_job(conversation))
    (hit,) = await store.history.search(ALICE, "估价", before=None, limit=1)
    assert (hit.message_id, hit.title) == (None, "货运估价")
    found = await store.history.search(ALICE, "分析", before=None, limit=5)
    assert [it.seq for it in found] == [1]  # what was asked, no longer the title


@ONLY_SQLITE
async def test_model_that_never_answers_is_asked_again_later(store: Store, history: History):
    agent = await keep_agent(store, settings=AgentSettings(generation_timeout_s=0.05))
    conversation = await keep_derived(store, agent)
    gateway = InMemoryGateway([TextDelta("分"), asyncio.Event()], reply_of("合同"))
    titles = titles_of(store, history, gateway)
    giving = asyncio.create_task(titles.give(title_job(conversation)))
    await asyncio.wait([giving], timeout=20)
    assert giving.done()
    with pytest.raises(TimeoutError):
        await giving
    assert gateway.open_streams == 0
    (charged,) = await store.ledger.usage(UsageFilter("0001-01-01", "9999-12-31", None), ())
    assert (charged.calls, charged.estimated) == (1, True)
    await titles.give(title_job(conversation))
    assert await title_of(store, conversation) == ("合同", TitleSource.MODEL)


async def test_model_that_fails_is_asked_again_later(store: Store, history: History):
    conversation = await keep_derived(store)
    gateway = InMemoryGateway([GatewayError("Busy.")], reply_of("合同"))
    titles = titles_of(store, history, gateway)
    with pytest.raises(GatewayError):  # the job is tried again
        await titles.give(title_job(conversation))
    await titles.give(title_job(conversation))
    assert await title_of(store, conversation) == ("合同", TitleSource.MODEL)


async def test_demonstration_model_and_deleted_conversations_are_left_alone(store: Store, history: History):
    conversation = await keep_derived(store)
    small = InMemoryGateway(supports_tools=False)
    await titles_of(store, history, small).give(title_job(conversation))
    await titles_of(store, history, None).give(title_job(conversation))
    await store.conversations.delete(ALICE, conversation.id, conversation.updated_at)
    large = InMemoryGateway()
    await titles_of(store, history, large).give(title_job(conversation))
    assert small.requests == large.requests == []
