"""Our own programs: they run turns of agents without code of their own, and no operator sees them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tests.making import NOW, keep_agent, keep_conversation, opened
from tests.runtime.nodes import DEAD, Nodes
from tests.runtime.test_programs import FakePrograms, has_ended
from threadkeep.agents import Turn
from threadkeep.agents.agent import Agent as Program
from threadkeep.bootstrap import adapters
from threadkeep.client import TurnWaiting
from threadkeep.domain.agent import BUILT_IN, Agent, Code
from threadkeep.domain.turn import TurnCode
from threadkeep.storage.database.bus import LocalBus
from threadkeep.storage.store import Store
from threadkeep.testing import running_app
from threadkeep.testing.waiting import until
from threadkeep.wire.programs import AgentDeclared

ECHO = f"{BUILT_IN}echo"


async def echo(turn: Turn) -> str:
    answer = await turn.ask("Louder?", choices=["yes", "no"])
    return f"{turn.text}, {turn.settings['name']}: {answer}"


def built_in_programs(_: object) -> Sequence[Program]:
    return [Program(echo, AgentDeclared(ECHO, 1), ())]


@pytest.fixture
def echoing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Agents with the prompt `Echo.` have a program of ours."""
    monkeypatch.setattr(adapters, "built_in_programs", built_in_programs)

    def program(it: Agent) -> str | None:
        return ECHO if it.system_prompt == "Echo." else None

    def program_settings(it: Agent) -> dict[str, str]:
        return {"name": it.name}

    with monkeypatch.context() as patched:
        patched.setattr(Agent, "program", property(program))
        patched.setattr(Agent, "program_settings", property(program_settings))
        yield


@pytest.mark.usefixtures("echoing")
async def test_agent_without_code_runs_by_a_program_of_ours_that_knows_its_settings():
    async with running_app() as app:
        conversation = await app.conversation("Parrot", system_prompt="Echo.")
        with pytest.raises(TurnWaiting) as waiting:
            await app.client.ask(conversation.id, "Hello")
        (asked,) = waiting.value.approvals
        await app.client.answer(asked.turn_id, asked.request_id, "answer", content="yes")
        assert (await app.client.reply(asked.turn_id)).content == "Hello, Parrot: yes"
        assert app.model.requests == []
        plain = await app.conversation("Plain")
        assert (await app.client.ask(plain.id, "Hello")).content == "OK."
        services = await app.app.services()
        assert await services.workers.waiting_turns() == {}
        assert services.workers.here.running == {}
        assert not await services.store.programs.all()


async def test_turn_of_a_built_in_program_waits_for_a_node_of_a_release_that_has_it(
    nodes: Nodes, store: Store
):
    bus = LocalBus()
    older = nodes.start(bus=bus, programs=FakePrograms(Code("orders", 2)))
    begun = (await keep_conversation(store, await keep_agent(store))).begin_turn("Hello", NOW)
    begun = replace(begun, turn=replace(begun.turn, code=TurnCode(ECHO, 1)))
    await store.turns.begin(opened(begun, replace(DEAD, length_ms=-10)))
    await older.recover_abandoned()
    assert not await has_ended(store, begun)
    stuck = FakePrograms(Code("orders", 2))
    newer = nodes.start(bus=bus, programs=stuck, built_in=FakePrograms(Code(ECHO, 1)))
    await until(lambda: has_ended(store, begun))
    assert newer.programs.codes == (Code("orders", 2), Code(ECHO, 1))
    assert {it.key for it in await store.programs.all()} == {"orders"}
