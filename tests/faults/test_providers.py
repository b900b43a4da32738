"""Faults of providers that only a whole turn shows, on every wire."""

from collections.abc import Sequence

import pytest

from tests.gateways.asking import WIRES
from threadkeep.domain.events import Failed, Notice, TurnEvent, UsageReported
from threadkeep.testing import NoUsage, Say, ScriptedModel, Status, Step, Usage, UseTool, running_app
from threadkeep.wire.parts import TextPartView, ToolCallPartView

pytestmark = pytest.mark.parametrize("wire", WIRES)


async def test_key_that_is_revoked_in_mid_turn_ends_it_readably_and_loses_nothing(wire: str):
    with ScriptedModel([Say("Let me see."), UseTool("look")], [Status(401, "revoked")]) as model:
        async with running_app(model, gateway=wire) as app:
            conversation = await app.conversation()
            events = [event async for event in app.client.send(conversation.id, "Hi")]
            (*_, reply) = [it async for it in app.client.messages(conversation.id)]
    end = events[-1].body
    assert isinstance(end, Failed)
    assert (end.message, end.retryable) == ("The model provider rejected the API key.", False)
    assert [type(part) for part in reply.parts] == [TextPartView, ToolCallPartView]
    assert reply.content == "Let me see."


async def test_provider_that_is_away_for_an_hour_fails_the_turn_at_once_and_says_when(wire: str):
    with ScriptedModel([Status(429, "Slow down", retry_after="3600")]) as model:
        async with running_app(model, gateway=wire) as app:
            conversation = await app.conversation()
            events = [event async for event in app.client.send(conversation.id, "Hi")]
    end = events[-1].body
    assert isinstance(end, Failed)
    assert end.message == "The model provider is busy (429): Slow down. Try again in 60 min."
    assert end.retryable
    assert not any(isinstance(event.body, Notice) for event in events)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("step", "is_estimated"),
    [
        (Usage(900, 20), False),
        (NoUsage(), True),
        (Usage(-900, 20), True),
        (Usage(900, -20), True),
        (Usage(10**12, 20), True),
    ],
    ids=["plausible", "none", "negative", "negative output", "absurd"],
)
async def test_usage_that_cannot_be_true_is_estimated(wire: str, step: Step, is_estimated: bool):
    with ScriptedModel([Say("Hello there."), step]) as model:
        async with running_app(model, gateway=wire) as app:
            conversation = await app.conversation()
            events = [event async for event in app.client.send(conversation.id, "Hi")]
    (usage,) = spent(events)
    assert usage.estimated is is_estimated
    assert (usage.input_tokens, usage.output_tokens) == (900, 20) or is_estimated
    assert 0 < usage.input_tokens < 10_000
    assert 0 < usage.output_tokens < 100


def spent(events: Sequence[TurnEvent]) -> list[UsageReported]:
    return [event.body for event in events if isinstance(event.body, UsageReported)]
