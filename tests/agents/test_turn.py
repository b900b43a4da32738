"""A turn, as an agent's function uses it: against a server in memory."""

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pydantic
import pytest
from msgspec import Raw

from tests.agents.peer import Journal, Paused, Peer, Script, fails, lose_everywhere, run_once
from threadkeep.agents import (
    AgentError,
    BudgetExceeded,
    CallReturned,
    Denied,
    HitItem,
    ModelFailed,
    ModelMessageItem,
    NotJson,
    Reply,
    StepInsideStep,
    ToolFailed,
    Turn,
    TurnError,
    TurnMisused,
    agent,
    current_turn,
    tool,
)
from threadkeep.agents.foreign import ForeignTool
from threadkeep.wire.programs import (
    AskClaim,
    CallClaim,
    ClaimFailed,
    FileItem,
    HitsItem,
    ModelClaim,
    ModelReply,
    ModelToolCall,
    NoticeItem,
    Output,
    ProgramError,
    SaveClaim,
    ServerTool,
    StepClaim,
    TakeClaim,
    ThoughtItem,
    UsageClaim,
)


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


async def test_a_step_returns_its_value_and_the_turn_what_the_function_returns():
    @agent()
    async def doubling(turn: Turn) -> str:
        return f"{turn.text} {await turn.step(double, 2)}"

    end, journal = await run_once(doubling, text="two")
    assert (end.status, end.text) == ("completed", "two 4")
    assert journal.writes == 2


async def test_a_function_that_is_lost_anywhere_ends_the_same():
    @agent()
    async def doubling(turn: Turn) -> str:
        results = await asyncio.gather(*(turn.step(double, it, effect="read") for it in (1, 2, 3)))
        await turn.say(f"Read {results}. ")
        if await turn.ask("Go on?", choices=["yes", "no"]) == "yes":
            return f"Wrote {await turn.step(double, 4, effect='idempotent')}."
        return "Left it."

    found = await lose_everywhere(doubling, answers={"Go on?": "yes"})
    assert found.whole.text == "Wrote 8."
    assert found.journal.text == "Read [2, 4, 6]. "
    assert not found.differ
    assert not found.repeated


async def test_what_a_turn_is_about():
    @agent(version=3)
    async def it(turn: Turn) -> str:
        assert turn.files == ()
        assert turn.model_id is None
        assert turn.client_tools == ()
        assert not turn.is_suspending
        assert turn.conversation.title == "Title"
        assert turn.user.groups == ()
        return f"{turn.id} {turn.version} {turn.message.id} {turn.user.name} {turn.conversation.id}"

    assert (await run_once(it))[0].text == "t1 3 m1 Ada c1"


async def test_now_is_the_time_of_what_was_delivered_last():
    times: list[datetime] = []

    @agent()
    async def it(turn: Turn) -> None:
        times.append(turn.now())
        await turn.step(double, 1)
        times.append(turn.now())

    _, journal = await run_once(it)
    await Peer(it, journal, Script()).end()
    assert times[0] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert times[1] > times[0]
    assert times[:2] == times[2:]


# What is shown


async def test_everything_that_can_be_shown(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2")

    @agent()
    async def it(turn: Turn) -> None:
        await turn.think("hm")
        await turn.notice("slow today")
        await turn.cite([HitItem("passage", source="a.pdf", page=2)], query="q")
        await turn.cite([{"text": "other", "source": "b.pdf"}])
        with pytest.raises(NotJson, match="has a `text`"):
            await turn.cite([{"source": "b.pdf"}])
        await turn.attach("a.txt", b"text")
        await turn.attach("b\n.bin", b"\0", "x/y")
        await turn.attach("c.csv", path)
        with pytest.raises(FileNotFoundError):
            await turn.attach("d", tmp_path / "missing")

    _, journal = await run_once(it)
    assert [item for _, item in journal.shown] == [
        ThoughtItem("hm"),
        NoticeItem("slow today"),
        HitsItem((HitItem("passage", source="a.pdf", page=2),), "q"),
        HitsItem((HitItem("other", source="b.pdf"),)),
        FileItem("a.txt", "text/plain", b"text"),
        FileItem("b .bin", "x/y", b"\0"),
        FileItem("c.csv", "text/csv", b"1,2"),
    ]


# Models


def replies(*given: ModelReply) -> Callable[[ModelClaim], ModelReply]:
    left = list(given)
    return lambda _: left.pop(0)


async def model_of(**options: Any) -> tuple[Reply, ModelClaim]:
    found: list[Reply] = []

    @agent()
    async def it(turn: Turn) -> None:
        found.append(await turn.model(**options))

    peer = Peer(it, Journal(), Script(reply=replies(ModelReply("said", model="m", input_tokens=3))))
    end = await peer.end()
    assert end.status == "completed", end
    return found[0], peer.models[0]


async def test_a_model_is_asked_and_what_it_used_is_known():
    reply, claim = await model_of(messages="hi", system="be kind", model="m", temperature=0.5, max_tokens=9)
    assert (reply.text, reply.model, reply.usage.input_tokens) == ("said", "m", 3)
    assert claim.messages == (ModelMessageItem("user", "hi"),)
    assert (claim.system, claim.model, claim.temperature, claim.max_tokens) == ("be kind", "m", 0.5, 9)
    assert claim.show
    assert not claim.server_tools


async def test_messages_are_texts_or_dicts_or_messages():
    mixed = ["a", {"role": "assistant", "content": "b"}, ModelMessageItem("user", "c")]
    _, claim = await model_of(messages=mixed)
    assert [it.content for it in claim.messages] == ["a", "b", "c"]

    @agent()
    async def it(turn: Turn) -> None:
        await turn.model([{"role": "system", "content": "x"}])

    end = await fails(it)
    assert end.error is not None
    assert end.error.type == f"{NotJson.__module__}.NotJson"
    assert "has `role` (user, assistant)" in end.error.message


@dataclasses.dataclass
class Weather:
    city: str
    degrees: float


class City(pydantic.BaseModel):
    name: str


@pytest.mark.parametrize(
    ("output", "text", "expected"),
    [
        (Weather, '{"city": "Oslo", "degrees": -3}', Weather("Oslo", -3)),
        (Weather, '```json\n{"city": "Oslo", "degrees": 1}\n```', Weather("Oslo", 1)),
        (City, '{"name": "Bonn"}', City(name="Bonn")),
        (list[City], '[{"name": "Bonn"}]', [City(name="Bonn")]),
        ({"type": "array"}, "[1]", [1]),
    ],
    ids=["dataclass", "fenced", "pydantic", "list", "schema"],
)
async def test_a_reply_is_read_as_what_was_asked_for(output: Any, text: str, expected: Any):
    found: list[Any] = []

    @agent()
    async def it(turn: Turn) -> None:
        found.append((await turn.model("?", output=output, show=False)).output)

    peer = Peer(it, Journal(), Script(reply=replies(ModelReply(text))))
    await peer.end()
    assert found == [expected]
    assert peer.models[0].output is not None
    assert "$ref" not in peer.models[0].output


async def test_a_reply_that_is_something_else_than_asked_for_raises():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.model("?", output=Weather)

    end = await fails(it, reply=replies(ModelReply("It is cold.")))
    assert end.error is not None
    assert "isn't the output that was asked for" in end.error.message


async def test_what_a_function_returns_of_a_model_is_said_once():
    @agent()
    async def shown(turn: Turn) -> Reply:
        return await turn.model("?")

    @agent()
    async def hidden(turn: Turn) -> Reply:
        return await turn.model("?", show=False)

    @agent()
    async def text_alone(turn: Turn) -> str:
        return (await turn.model("?")).text

    @agent()
    async def text_later(turn: Turn) -> str:
        reply = await turn.model("?")
        await turn.say("In other words: ")
        return reply.text

    assert (await run_once(shown))[0].text is None
    assert (await run_once(text_alone))[0].text is None
    assert (await run_once(hidden))[0].text == "a reply"
    assert (await run_once(text_later))[0].text == "a reply"


async def test_what_the_user_sent_meanwhile_is_asked_too_and_only_once():
    @agent()
    async def it(turn: Turn) -> None:
        reply = await turn.model("a")
        assert reply.steering == ("and b", "and c")
        assert (await turn.model("d")).steering == ()
        await turn.model("hidden", show=False)
        assert await turn.steering() == ["and e"]

    script = Script(steering=[["and b", "and c"], [], ["and e"]])
    peer = Peer(it, Journal(), script)
    assert (await peer.end()).status == "completed"
    assert [[m.content for m in it.messages] for it in peer.models] == [
        ["a", "and b", "and c"],
        ["d"],
        ["hidden"],
    ]
    assert len([it for it in peer.claimed if isinstance(it, TakeClaim)]) == 3


@pytest.mark.parametrize(
    ("code", "type_", "kind"),
    [
        ("MODEL_FAILED", "GATEWAY_UNAVAILABLE", ModelFailed),
        ("BUDGET_EXCEEDED", "BUDGET_EXCEEDED", BudgetExceeded),
        ("DENIED", "", Denied),
        ("TOOL_FAILED", "", ToolFailed),
    ],
)
async def test_an_error_of_the_server_is_one_of_ours_and_ends_the_turn_with_its_code(
    code: str, type_: str, kind: type[TurnError]
):
    caught: list[TurnError] = []

    @agent()
    async def it(turn: Turn) -> None:
        try:
            await turn.call("x")
        except TurnError as exc:
            caught.append(exc)
            raise

    def refuse(_: CallClaim) -> ClaimFailed:
        return ClaimFailed(0, ProgramError(type_, "no"), code)

    end, _ = await run_once(it, call=refuse)
    assert type(caught[0]) is kind
    assert str(caught[0]) == "no"
    assert end.code == code


# Tools


@tool(effect="read")
async def weather(city: str, days: int = 1) -> Weather:
    """Says how warm it is."""
    if city == "Atlantis":
        raise AgentError("There is no Atlantis.")
    return Weather(city, days)


@tool(name="shout", effect="idempotent", access="ask")
def shout_loudly(text: str) -> str:
    return text.upper()


def calls(*given: ModelToolCall) -> ModelReply:
    blocks = tuple(
        {"type": "tool_use", "id": it.id, "name": it.name, "arguments": it.arguments} for it in given
    )
    return ModelReply("", tool_calls=given, blocks=blocks, stop_reason="tool_use")


async def test_run_asks_the_model_and_calls_its_tools_until_it_has_replied():
    @agent(tools=[weather])
    async def it(turn: Turn) -> Reply:
        return await turn.run(system="help", tools=[shout_loudly])

    def call(claim: CallClaim) -> Raw:
        return Raw(msgspec.json.encode(CallReturned("ok", f"found {claim.arguments}")))

    first = calls(
        ModelToolCall("c1", "weather", {"city": "Oslo", "days": "2"}),
        ModelToolCall("c2", "shout", {"text": "a"}),
        ModelToolCall("c3", "server__find", {"q": 1}),
        ModelToolCall("c4", "weather", {"city": "Atlantis"}),
        ModelToolCall("c5", "weather", {"town": "Oslo"}),
    )
    script = Script(
        taken={"history": [{"role": "user", "content": "How warm?"}]},
        reply=replies(first, ModelReply("Warm.")),
        call=call,
        steering=[[], ["hurry"]],
    )
    peer = Peer(it, journal := Journal(), script)
    end = await peer.end()
    assert end.status == "completed", end
    asked, again = peer.models
    assert [it.name for it in asked.tools] == ["weather", "shout"]
    assert asked.server_tools
    assert [it.content for it in asked.messages] == ["How warm?"]
    _, uses, results, steered = again.messages
    assert uses.role == "assistant"
    assert steered.content == "hurry"
    texts = {it["tool_use_id"]: (it["content"], it["is_error"]) for it in results.content}  # type: ignore[index]
    assert texts["c1"] == ('{"city":"Oslo","degrees":2.0}', False)
    assert texts["c2"] == ("A", False)
    assert texts["c3"] == ("found {'q': 1}", False)
    assert texts["c4"] == ("AgentError: There is no Atlantis.", True)
    assert texts["c5"][1]
    assert "unknown field `town`" in texts["c5"][0]

    steps = {it.call_id: it for it in peer.claimed if isinstance(it, StepClaim)}
    assert steps["c1"].is_tool
    assert (steps["c1"].effect, steps["c1"].access) == ("read", "allow")
    assert (steps["c2"].effect, steps["c2"].access) == ("idempotent", "ask")
    assert steps["c1"].arguments == {"city": "Oslo", "days": "2"}
    assert (await Peer(it, journal, Script()).end()) == end


async def test_run_calls_each_tool_once_wherever_it_is_lost():
    @agent(tools=[weather])
    async def it(turn: Turn) -> Reply:
        return await turn.run(messages="How warm?")

    def reply(claim: ModelClaim) -> ModelReply:
        both = ModelToolCall("c1", "weather", {"city": "a"}), ModelToolCall("c2", "weather", {"city": "b"})
        return calls(*both) if len(claim.messages) == 1 else ModelReply("Warm.")

    found = await lose_everywhere(it, reply=reply)
    assert found.whole.status == "completed"
    assert found.positions > 5
    assert not found.differ
    assert not found.repeated


async def test_a_denied_and_an_unknown_call_are_for_the_model_to_read():
    @agent(tools=[weather])
    async def it(turn: Turn) -> Reply:
        return await turn.run(messages="How warm?")

    def call(_: CallClaim) -> ClaimFailed:
        return ClaimFailed(0, ProgramError("", "Not today."), "DENIED")

    script = Script(reply=replies(calls(ModelToolCall("c1", "other", {})), ModelReply("OK.")), call=call)
    peer = Peer(it, Journal(), script)
    await peer.end()
    (result,) = peer.models[1].messages[-1].content
    assert result == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": "The user denied the call. Not today.",
        "is_error": True,
    }


async def plain_function(number: int) -> int:
    return number + 1


async def test_tools_can_be_called_by_the_code():
    @agent()
    async def it(turn: Turn) -> str:
        found = await turn.call(weather, {"city": "Oslo"})
        assert found == Weather("Oslo", 1)
        assert await turn.step(weather, "Bonn", 3) == Weather("Bonn", 3)
        assert [it.name for it in await turn.tools()] == ["find"]
        returned = await turn.call("find", {"q": 1})
        return f"{returned.text}, {await turn.call(plain_function, {'number': 3})}"

    script = Script(
        call=lambda _: Raw(msgspec.json.encode(CallReturned("ok", "found", result=[1]))),
        taken={"tools": [msgspec.to_builtins(ServerTool("find", "Finds.", {}))]},
    )
    peer = Peer(it, Journal(), script)
    assert (await peer.end()).text == "found, 4"
    steps = [it for it in peer.claimed if isinstance(it, StepClaim)]
    assert [(it.name, it.is_tool, it.effect) for it in steps] == [
        ("weather", True, "read"),
        ("weather", False, "read"),
        ("plain_function", True, "write"),
    ]


async def test_a_frameworks_tool_is_given_its_arguments_as_they_are_and_told_apart_by_call_ids():
    given: list[dict[str, Any]] = []

    async def book(arguments: dict[str, Any]) -> str:
        given.append(arguments)
        return f"booked {arguments['seats']}"

    schema = {"type": "object", "properties": {"seats": {"type": "string"}}}
    foreign = ForeignTool(book, name="book", description="Books.", parameters=schema, access="ask")

    @agent()
    async def it(turn: Turn) -> str:
        seats = {"seats": "two"}  # for the framework to refuse, not for us
        calls = (turn.call(foreign, seats, call_id=id_) for id_ in ("call-1", "call-2"))
        return ", ".join(await asyncio.gather(*calls))

    peer = Peer(it, Journal(), Script())
    assert (await peer.end()).text == "booked two, booked two"
    assert given == [{"seats": "two"}, {"seats": "two"}]
    steps = [it for it in peer.claimed if isinstance(it, StepClaim)]
    assert [(it.name, it.call_id, it.access, it.schema) for it in steps] == [
        ("book", "call-1", "ask", schema),
        ("book", "call-2", "ask", schema),
    ]


# The user


@dataclasses.dataclass
class Address:
    street: str
    number: int = 1


@pytest.mark.parametrize(
    ("asked", "answer", "expected", "schema"),
    [
        ({}, "text", "text", {"type": "string"}),
        ({"choices": ["yes", "no"]}, "no", "no", {"type": "string", "enum": ["yes", "no"]}),
        ({"type": int}, {"answer": 5}, 5, None),
        ({"type": bool}, {"answer": True}, True, None),
        ({"type": Address}, {"street": "a"}, Address("a"), None),
        ({"type": Address}, None, None, None),
        ({"type": City}, {"name": "Bonn"}, City(name="Bonn"), None),
    ],
    ids=["text", "choices", "int", "bool", "dataclass", "declined", "pydantic"],
)
async def test_an_answer_is_what_was_asked_for(
    asked: dict[str, Any], answer: Any, expected: Any, schema: Any
):
    found: list[Any] = []

    @agent()
    async def it(turn: Turn) -> None:
        found.append(await turn.ask("Which?", **asked))

    peer = Peer(it, Journal(), Script(answers={"Which?": answer}))
    await peer.end()
    assert found == [expected]
    (claim,) = peer.claimed
    assert isinstance(claim, AskClaim)
    assert claim.schema is not None
    assert claim.schema["type"] in ("string", "object")
    if schema is not None:
        assert claim.schema == schema


async def test_choices_that_are_one_text_and_what_is_too_long_are_refused_with_a_sentence():
    @agent()
    async def it(turn: Turn) -> None:
        with pytest.raises(ValueError, match=r"is a list of texts: `choices=\['yes'\]`"):
            await turn.ask("Which?", choices="yes")
        with pytest.raises(TurnMisused, match="A question has at most 32000 characters; not 40000"):
            await turn.approve("x" * 40_000)
        with pytest.raises(TurnMisused, match="take at most 65536 bytes; not 70"):
            await turn.ask("Which?", choices=["x" * 70_000])

    assert (await Peer(it, Journal(), Script()).end()).status == "completed"


async def test_an_answer_that_does_not_fit_raises():
    @agent()
    async def it(turn: Turn) -> None:
        await turn.ask("Which?", type=int)

    for answer in ({"answer": "x"}, {}, "x"):
        end = await fails(it, answers={"Which?": answer})
        assert end.error is not None
        assert "doesn't fit the question" in end.error.message


@pytest.mark.parametrize(("answer", "expected"), [("yes", True), ("no", False), (None, False)])
async def test_approve_is_a_yes_or_a_no(answer: str | None, expected: bool):
    @agent()
    async def it(turn: Turn) -> str:
        return str(await turn.approve("Sure?"))

    assert (await run_once(it, answers={"Sure?": answer}))[0].text == str(expected)


async def test_a_question_pauses_the_turn_and_its_answer_runs_the_function_again():
    ran: list[int] = []

    async def counted() -> int:
        ran.append(1)
        return len(ran)

    @agent()
    async def it(turn: Turn) -> str:
        before = await turn.step(counted)
        answer = await turn.ask("Which?")
        return f"{before} {answer}"

    journal = Journal()
    with pytest.raises(Paused):
        await Peer(it, journal, Script()).end()
    assert (await Peer(it, journal, Script(answers={"Which?": "b"})).end()).text == "1 b"


# The past, records


async def test_history_is_what_the_server_has():
    @agent()
    async def it(turn: Turn) -> str:
        assert await turn.history(5) == [{"id": "m0"}]
        return str(len(await turn.history()))

    peer = Peer(it, Journal(), Script(taken={"history": [{"id": "m0"}]}))
    assert (await peer.end()).text == "1"
    first, _ = peer.claimed
    assert isinstance(first, TakeClaim)
    assert (first.limit, first.as_context) == (5, False)


async def test_usage_needs_no_await_and_can_be_awaited():
    @agent()
    async def it(turn: Turn) -> None:
        turn.usage("m", 1, 2, cost="0.1")
        await turn.usage("n", 3, 4)

    peer = Peer(it, journal := Journal(), Script())
    await peer.end()
    assert [(it.model, it.cost, it.step) for it in peer.usage] == [("m", "0.1", None), ("n", None, None)]
    again = Peer(it, journal, Script())
    assert (await again.end()).status == "completed"
    assert not again.usage


async def test_state_is_sent_only_if_it_was_changed():
    @agent()
    async def it(turn: Turn) -> None:
        if turn.text == "change":
            turn.state["seen"] = turn.state.get("seen", 0) + 1
            turn.state["raw"] = b"\0\xff"
        elif turn.text == "replace":
            turn.state = {"new": [1]}
        elif turn.text == "read":
            assert turn.state == {"a": 1}

    old = Raw(b'{"a":1}')
    for text in ("", "read"):
        end, _ = await run_once(it, text=text, state=old)
        assert bytes(end.state) == b""
    end, _ = await run_once(it, text="replace", state=old)
    assert bytes(end.state) == b'{"new":[1]}'
    end, _ = await run_once(it, text="change")
    end, _ = await run_once(it, text="change", state=end.state)
    assert msgspec.json.decode(end.state) == {"seen": 2, "raw": {"threadkeep:bytes": "AP8="}}


async def test_a_state_that_looks_like_bytes_is_what_it_was():
    kept = {"a": {"threadkeep:bytes": 5}, "b": [{"threadkeep:bytes": {"threadkeep:bytes": "x"}}], "c": b"c"}

    @agent()
    async def it(turn: Turn) -> str:
        if turn.text == "keep":
            turn.state = kept
        return str(turn.state == kept)

    end, _ = await run_once(it, text="keep")
    end, _ = await run_once(it, text="read", state=end.state)
    assert end.text == "True"


async def test_a_saved_point_makes_what_was_before_it_optional():
    async def counted(number: int) -> int:
        return number

    @agent()
    async def it(turn: Turn) -> str:
        turn.state["a"] = 1
        for number in range(turn.saved or 0, 4):
            await turn.step(counted, number)
            await turn.save(number + 1)
        return f"{turn.saved} {await turn.step(counted, 9)}"

    found = await lose_everywhere(it)
    assert found.whole.text == "4 9"
    assert (found.positions, found.unknown) == (14, 5)
    assert not found.differ
    assert not found.repeated
    peer = Peer(it, Journal(), Script())
    await peer.end()
    saves = [it for it in peer.claimed if isinstance(it, SaveClaim)]
    assert bytes(saves[0].state) == b'{"a":1}'


async def test_scopes_have_keys_and_saved_points_of_their_own():
    @agent()
    async def it(turn: Turn) -> str:
        inner = turn.scope("billing").scope("1/x")
        await inner.step(double, 1)
        await turn.step(double, 1)
        await inner.save("inner")
        with pytest.raises(ValueError, match="A scope's name"):
            turn.scope("a//b")
        return f"{turn.saved} {inner.saved}"

    end, journal = await run_once(it)
    assert end.text == "None inner"
    assert {it.rpartition("/double/")[0] for it in (*journal.ended, *journal.optional)} == {"", "billing/1/x"}


async def test_inside_a_step_only_output_is_allowed():
    @agent()
    async def it(turn: Turn) -> str:
        async def inner() -> str:
            for call in (
                turn.model("x"),
                turn.run(messages="x"),
                turn.call("x"),
                turn.save(1),
                turn.history(),
            ):
                with pytest.raises(StepInsideStep):
                    await call
            turn.usage("m", 1, 1)
            return "refused"

        return await turn.step(inner)

    peer = Peer(it, Journal(), Script())
    assert (await peer.end()).text == "refused"
    assert [it.step for it in peer.usage] == [1]


@pytest.mark.parametrize(
    ("call", "given", "sentence"),
    [
        ("usage", ("m", 12.5, 1), r"turn\.usage was .* Expected `int`, got `float` - at `\$.input_tokens`"),
        ("usage", ("m", 1, None), r"Expected `int`, got `null` - at `\$.output_tokens`"),
        ("usage", ("m", "12", 1), r"Expected `int`, got `str` - at `\$.input_tokens`"),
        ("usage", ("m", -5, 1), r"`\$.input_tokens`"),
        ("usage", ("m", 1, 2**63), r"`\$.output_tokens`"),
        ("usage", (None, 1, 1), r"`\$.model`"),
        ("usage", ("a\x00", 1, 1), r"`\$.model`"),
        ("cite", ([{"text": "a", "score": float("nan")}],), r"turn\.cite was .* JSON has no NaN"),
        ("cite", ([HitItem("a", score=float("inf"))],), "JSON has no NaN and no infinity"),
        ("cite", ([HitItem("a", page=cast("Any", "3"))],), r"Expected `int \| null`, got `str`"),
        ("attach", ("a", b"", 5), r"turn\.attach was .* `\$.media_type`"),
        ("model", ([ModelMessageItem("user", cast("Any", 5))],), r"`\$.messages\[0\].content`"),
        ("history", ("5",), r"turn\.history was .* `\$.limit`"),
    ],
)
async def test_what_the_server_cannot_take_is_refused_where_it_is_given(
    call: str, given: tuple[object, ...], sentence: str
):
    @agent()
    async def it(turn: Turn) -> str:
        with pytest.raises(TurnMisused, match=sentence):
            await getattr(turn, call)(*given)
        return "end"

    peer = Peer(it, Journal(), Script())
    assert (await peer.end()).text == "end"
    assert not [it for it in peer.received if isinstance(it, UsageClaim | ModelClaim | Output)]


@pytest.mark.parametrize("wrong", [float("nan"), "50%"])
async def test_progress_is_a_number(wrong: Any):
    async def works() -> None:
        await current_turn().progress(wrong)

    @agent()
    async def it(turn: Turn) -> str:
        with pytest.raises(TurnMisused, match=r"turn\.progress was given what it can't take"):
            await turn.step(works, access="ask")
        return "end"

    end, _ = await run_once(it)
    assert end.text == "end"


async def test_arguments_of_a_call_are_json():
    @tool(effect="read")
    def looks(f: Any) -> str:
        return str(f)

    @agent()
    async def it(turn: Turn) -> str:
        for called in ("search", looks):
            with pytest.raises(NotJson, match=r"The arguments of `(search|looks)` can't be written as JSON"):
                await turn.call(called, {"f": object()})
        await turn.call("search", {"on": datetime(2026, 11, 19, tzinfo=UTC), "both": (1, 2)})
        return "end"

    peer = Peer(it, Journal(), Script(call=lambda _: Raw(msgspec.json.encode(CallReturned("ok", "")))))
    assert (await peer.end()).text == "end"
    (claim,) = [it for it in peer.received if isinstance(it, CallClaim)]
    assert claim.arguments == {"on": "2026-11-19T00:00:00Z", "both": [1, 2]}
