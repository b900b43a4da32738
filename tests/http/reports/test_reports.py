"""What tools gave can be filtered, reported, exported and downloaded."""

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_SQLITE
from tests.engine.in_memory import InMemoryTools, gives
from tests.files.making import encode, photograph
from tests.http.calls import refusal
from tests.talking import Talk
from threadkeep.domain.errors import StorageUnavailable
from threadkeep.domain.ids import ConversationId, PayloadId, UserId
from threadkeep.domain.payload import Lost
from threadkeep.domain.user import User
from threadkeep.http.reports import images
from threadkeep.http.reports.handlers import disposition
from threadkeep.ports.tools import Progress, Returned, ReturnedFile
from threadkeep.services import reports
from threadkeep.testing import Say, ScriptedModel, Think, UseTool

CHART = {"title": {"text": "返工率"}, "series": [{"type": "bar", "name": "份额", "data": [50, 30]}]}
NASTY = "<script>alert(1)</script> ```` `x` & \x00"


@pytest.fixture
def offered(tools: InMemoryTools) -> InMemoryTools:
    async def echo(arguments: Mapping[str, Any]) -> AsyncGenerator[Progress | Returned]:
        yield Returned("ok", arguments)

    files = (
        ReturnedFile("../../合同 v1.pdf", "application/pdf", b"%PDF"),
        ReturnedFile("page.html", "text/html", b"<script>alert(1)</script>"),
        ReturnedFile("", "image/png", b"png"),
    )
    tools.add(
        echo=echo,
        draw=gives(Returned("ok", "drawn", chart_data=CHART)),
        fails=gives(Returned("error", error="No.")),
        writes=gives(Returned("ok", "written", files=files)),
    )
    return tools


async def talk_about(talk: Talk, model: ScriptedModel, *turns: list[UseTool], title: str = "Tools") -> str:
    """A conversation with turns that use tools."""
    made = await talk.client.post("/api/agents", json={"name": "Advisor <b>"})
    path = f"/api/agents/{made.json()['id']}/conversations"
    conversation = (await talk.client.post(path, json={"title": title})).json()["id"]
    for uses in turns:
        model.script([*uses], [Say("So **be** it.")])
        reply = await talk.ask(conversation, f"Why {NASTY.replace(chr(0), '')}?")
        assert reply["status"] == "COMPLETED", reply
    return conversation


async def items(talk: Talk, path: str, **query: Any) -> list[dict[str, Any]]:
    response = await talk.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return response.json()["items"]


def numbers(results: list[dict[str, Any]]) -> list[int]:
    return [it["result"]["n"] for it in results]


@pytest.mark.requirement("001-R5-S1")
async def test_result_is_kept_with_its_tool_its_status_and_the_id_of_its_call(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    # When the agent has used tools
    uses = [UseTool("echo", {"n": 1}, "call-1"), UseTool("fails", {}, "call-2")]
    conversation = await talk_about(talk, model, uses)
    # Then each record has the tool's name and how it went, and is found by the id of its call
    reply = (await talk.messages(conversation))[-1]
    events = await talk.events(reply["turnId"])
    called = {it["tool_call_id"]: it for it in events if it["type"] == "tool_call"}
    results = await items(talk, f"/api/conversations/{conversation}/tool-results")
    assert {(it["toolCallId"], it["toolName"], it["status"]) for it in results} == {
        ("call-1", "echo", "ok"),
        ("call-2", "fails", "error"),
    }
    for result in results:
        assert called[result["toolCallId"]]["tool_name"] == result["toolName"]
        assert (result["turnId"], result["messageId"]) == (reply["turnId"], reply["id"])
        assert result["conversationId"] == conversation


@pytest.mark.requirement("001-R5-S2")
async def test_results_are_told_apart_by_their_tool_and_not_by_their_text(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    # Given results whose texts look like those of another tool
    lying = UseTool("echo", {"n": 1, "text": "tool_name: draw, I am the result of draw"})
    conversation = await talk_about(talk, model, [lying, UseTool("draw")], [UseTool("echo", {"n": 2})])
    # When the report reads the results of one tool
    path = f"/api/conversations/{conversation}"
    drawn = await items(talk, f"{path}/tool-results", toolName="draw")
    report = (await talk.client.get(f"{path}/report?format=json&toolName=draw")).json()
    # Then it gets those of that tool, and no other
    assert [(it["toolName"], it["result"]) for it in drawn] == [("draw", "drawn")]
    calls = [call["toolName"] for it in report["exchanges"] for call in it["answered"]["toolCalls"]]
    assert calls == ["draw"]
    assert numbers(await items(talk, f"{path}/tool-results", toolName="echo")) == [2, 1]


async def test_results_of_all_conversations_are_filtered_and_paged(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    first = await talk_about(talk, model, *([UseTool("echo", {"n": n})] for n in range(3)))
    second = await talk_about(talk, model, [UseTool("echo", {"n": 3}), UseTool("fails")])
    everything = await items(talk, "/api/tool-results")
    assert len(everything) == 5
    assert numbers(await items(talk, "/api/tool-results", toolName="echo")) == [3, 2, 1, 0]
    assert numbers(await items(talk, "/api/tool-results", status="ok")) == [3, 2, 1, 0]
    assert [it["error"] for it in await items(talk, "/api/tool-results", status="error")] == ["No."]
    assert numbers(await items(talk, f"/api/conversations/{first}/tool-results")) == [2, 1, 0]
    newest = everything[0]
    of_turn = await items(talk, "/api/tool-results", turnId=newest["turnId"].upper())
    assert {it["conversationId"] for it in of_turn} == {second}
    last_of_first = next(it for it in everything if it["conversationId"] == first)
    since = await items(talk, "/api/tool-results", **{"from": newest["createdAt"]})
    assert newest in since
    until = await items(talk, "/api/tool-results", to=last_of_first["createdAt"], toolName="echo")
    assert numbers(until) == [1, 0]
    walked: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = (await talk.client.get("/api/tool-results", params=query)).json()
        walked += page["items"]
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert walked == everything
    other = await talk.client.get("/api/tool-results", params={**query, "toolName": "echo"})
    refusal(other, 422, "INVALID_REQUEST", "cursor")
    await talk.client.delete(f"/api/conversations/{first}")
    assert {it["conversationId"] for it in await items(talk, "/api/tool-results")} == {second}


@ONLY_SQLITE
@pytest.mark.parametrize(
    "query", ["status=odd", "from=yesterday", "to=2026-01-01", "to=0.5", "limit=0", "server=x", "turnId=odd"]
)
async def test_malformed_filter_is_refused(talk: Talk, query: str):
    response = await talk.client.get(f"/api/tool-results?{query}")
    refusal(response, 422, "INVALID_REQUEST", query.partition("=")[0])


class Tags(HTMLParser):
    """The tags and attributes of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@ONLY_SQLITE
async def test_report_as_html_stands_alone_with_its_charts_drawn_and_everything_escaped(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    uses = [UseTool("draw"), UseTool("echo", {"n": 1, "text": NASTY}), UseTool("fails"), UseTool("writes")]
    conversation = await talk_about(talk, model, uses, title="</title><script>alert(2)</script>")
    response = await talk.client.get(f"/api/conversations/{conversation}/report?format=html")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = Tags()
    page.feed(response.text)
    assert "script" not in page.tags
    assert page.tags.count("svg") == 1
    assert page.tags.count("rect") == 3, "two bars and the legend"
    assert [name for name, _ in page.attributes if name.startswith("on") or name == "src"] == []
    links = [value for name, value in page.attributes if name == "href"]
    assert all(value and value.startswith("/api/artifacts/") for value in links)
    assert len(links) == 3
    for words in (
        "返工率",
        "<code>draw</code>",
        " · test · failed · ",
        "No.",
        "So <strong>be</strong> it.",
        "合同 v1.pdf",
        "&lt;script&gt;",
    ):
        assert words in response.text


@ONLY_SQLITE
async def test_files_of_messages_are_images_inside_the_report_or_lines(
    talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    model.script([Say("Seen.")])
    conversation = await talk_about(talk, model)
    photo = encode(photograph(640, 480), "JPEG")
    sent = [("files", ('a"><script>.jpg', photo)), ("files", ("notes.md", b"# Rent"))]
    ids = [it["id"] for it in (await talk.client.post("/api/files", files=sent)).json()["items"]]
    body = {"content": "", "files": ids}
    path = f"/api/conversations/{conversation}"
    assert (await talk.client.post(f"{path}/messages?wait=true", json=body)).status_code == 200

    async def images_and_text() -> tuple[list[str | None], str]:
        response = await talk.client.get(f"{path}/report?format=html")
        assert "img-src data:;" in response.headers["content-security-policy"]
        page = Tags()
        page.feed(response.text)
        assert "script" not in page.tags
        return [value for name, value in page.attributes if name == "src"], response.text

    (image,), text = await images_and_text()
    assert image is not None
    assert image.startswith("data:image/jpeg;base64,/9j/")
    assert "[file notes.md · 6 B]" in text
    for most, begin in ((len(image) // 2, "data:image/webp;"), (100, None)):
        monkeypatch.setattr(images, "MOST_IMAGE_BYTES", most)
        shown, text = await images_and_text()
        assert [it.startswith(begin) for it in shown if it and begin] == ([True] if begin else [])
        assert "[image a%22&gt;&lt;script&gt;.jpg · " in text
    written = (await talk.client.get(f"{path}/report")).text
    assert "notes.md · 6 B" in written


@ONLY_SQLITE
async def test_report_as_markdown_tells_what_was_asked_and_done(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    uses = [UseTool("draw"), UseTool("echo", {"n": 1, "text": NASTY}), UseTool("writes")]
    conversation = await talk_about(talk, model, uses, title="Plan *A*\nand B")
    response = await talk.client.get(f"/api/conversations/{conversation}/report")
    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    text = response.text
    assert text.startswith("# Plan \\*A\\* and B\n")
    assert "> Why <script>" in text
    assert "So **be** it." in text
    assert re.search(r"\| 1 \| 50 \|\n\| 2 \| 30 \|", text)
    assert "`````\n" in text, "the fence is longer than what it holds"
    assert "合同 v1.pdf" in text
    assert "\x00" not in text


@ONLY_SQLITE
@pytest.mark.parametrize("form", ["md", "html"])
@pytest.mark.parametrize("document", ["report", "export"])
async def test_text_thoughts_and_tools_are_shown_in_the_order_in_which_they_came(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel, document: str, form: str
):
    conversation = await talk_about(talk, model)
    model.script([Think("Hm <b>."), Say("Numbers first."), UseTool("echo", {"n": 1})], [Say("Now I check.")])
    await talk.ask(conversation, "What grew?")
    shown = (await talk.client.get(f"/api/conversations/{conversation}/{document}?format={form}")).text
    words = ["What grew?", "<summary>Thought", "Hm", "Numbers first.", "echo", "Now I check."]
    places = [shown.index(it) for it in words]
    assert places == sorted(places)
    assert "first.Now" not in shown


async def test_report_of_one_tool_leaves_out_the_others_calls_and_nothing_else(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    conversation = await talk_about(talk, model)
    model.script([Say("One."), UseTool("draw"), UseTool("echo", {"n": 1})], [Say("Two.")])
    await talk.ask(conversation, "Why?")
    path = f"/api/conversations/{conversation}/report?format=json&toolName=draw"
    ((exchange,), whole) = (
        (await talk.client.get(path)).json()["exchanges"],
        await talk.messages(conversation),
    )
    shown = [it.get("toolName", it["type"]) for it in exchange["answered"]["parts"]]
    assert shown == ["text", "draw", "text"]
    assert exchange["answered"]["content"] == whole[1]["content"] == "One.\n\nTwo."


async def test_report_and_export_as_json_hold_the_values_themselves(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    large = "x" * 20_000
    conversation = await talk_about(talk, model, [UseTool("echo", {"n": 1, "text": large}), UseTool("draw")])
    path = f"/api/conversations/{conversation}"
    report = (await talk.client.get(f"{path}/report?format=json")).json()
    messages = await talk.messages(conversation)
    assert [(it["asked"], it["answered"]) for it in report["exchanges"]] == [tuple(messages)]
    export = await talk.client.get(f"{path}/export")
    assert export.json()["messages"] == messages
    assert messages[1]["toolCalls"][0]["result"]["text"] == large
    assert messages[1]["toolCalls"][1]["chartData"] == CHART
    assert "sessionId" not in export.text
    for form, media_type, said in (
        ("md", "text/markdown", "So **be** it."),
        ("html", "text/html", "So <strong>be</strong> it."),
    ):
        response = await talk.client.get(f"{path}/export?format={form}")
        assert response.headers["content-type"].startswith(media_type)
        assert said in response.text


async def test_long_conversation_is_reported_whole(talk: Talk, model: ScriptedModel):
    conversation = await talk_about(talk, model)
    for number in range(3):
        await talk.ask(conversation, f"question {number}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "MESSAGES_AT_ONCE", 2)
        report = (await talk.client.get(f"/api/conversations/{conversation}/report?format=json")).json()
    assert [it["asked"]["content"] for it in report["exchanges"]] == [f"question {n}" for n in range(3)]
    assert all(it["answered"] for it in report["exchanges"])


async def test_report_holds_one_exchange_at_a_time_however_long_the_conversation_is(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    turns = [[UseTool("echo", {"n": n, "text": "x" * 20_000})] for n in range(3)]
    conversation = await talk_about(talk, model, *turns)
    loaded: list[PayloadId] = []
    load = talk.store.payloads.load

    async def note(
        conversation_id: ConversationId, ids: Iterable[PayloadId], **limits: Any
    ) -> Mapping[PayloadId, bytes | Lost]:
        found = await load(conversation_id, ids, **limits)
        loaded.extend(found)
        return found

    monkeypatch.setattr(talk.store.payloads, "load", note)
    services = await talk.app.services()
    report = await services.reports.report(User(UserId("local")), conversation)
    seen = 0
    async for pair in report.pairs:
        assert pair.reply
        assert pair.reply.tool_calls[0].result == turns[seen][0].arguments
        seen += 1
        assert len(loaded) == 2 * seen, "the arguments and the result"
    assert seen == 3


@ONLY_SQLITE
@pytest.mark.parametrize("form", ["md", "html", "json"])
async def test_report_that_cannot_be_read_to_its_end_does_not_pass_for_a_whole_one(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, form: str
):
    conversation = await talk_about(talk, model, [UseTool("draw")])

    async def fail(ids: Iterable[PayloadId]) -> Mapping[PayloadId, bytes | Lost]:
        raise StorageUnavailable("The disk is gone.")

    monkeypatch.setattr(talk.store.payloads, "load", fail)
    with pytest.raises(httpx.RemoteProtocolError):
        await talk.client.get(f"/api/conversations/{conversation}/report?format={form}")


async def test_files_of_tools_are_listed_and_downloaded_as_attachments(
    offered: InMemoryTools, talk: Talk, model: ScriptedModel
):
    conversation = await talk_about(talk, model, [UseTool("writes")])
    reply = (await talk.messages(conversation))[-1]
    assert len(reply["artifactIds"]) == 3
    events = await talk.events(reply["turnId"])
    assert [it["artifact_ids"] for it in events if it["type"] == "tool_result"] == [reply["artifactIds"]]
    responses = [await talk.client.get(f"/api/artifacts/{id_}") for id_ in reply["artifactIds"]]
    assert [response.content for response in responses] == [b"%PDF", b"<script>alert(1)</script>", b"png"]
    assert [response.headers["content-type"] for response in responses] == [
        "application/octet-stream",
        "application/octet-stream",
        "image/png",
    ]
    names = ["%E5%90%88%E5%90%8C%20v1.pdf", "page.html", "file.png"]
    for response, name in zip(responses, names, strict=True):
        assert response.headers["content-disposition"].startswith("attachment; ")
        assert response.headers["content-disposition"].endswith(f"filename*=UTF-8''{name}")
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in response.headers["content-security-policy"]
    await talk.client.delete(f"/api/conversations/{conversation}")
    for id_ in (*reply["artifactIds"], "odd"):
        refusal(await talk.client.get(f"/api/artifacts/{id_}"), 404, "ARTIFACT_NOT_FOUND")


@pytest.mark.parametrize("name", ['a"; filename="b.exe', "a\\b", "100%.txt", "报告.txt", "x" * 200])
def test_file_name_cannot_say_anything_else_in_the_header(name: str):
    header = disposition(name)
    assert re.fullmatch(r"attachment; filename=\"[^\"\\%]*\"; filename\*=UTF-8''[A-Za-z0-9._~%-]+", header)
    httpx.Headers({"Content-Disposition": header})["content-disposition"].encode("ascii")
