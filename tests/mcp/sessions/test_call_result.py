"""What a server answers becomes what the model reads, the chart that is drawn and the files that are kept."""

import base64
from pathlib import Path
from typing import Any

import mcp_types as mcp

from tests.mcp.running import Limits, chaos, pooled
from threadkeep.mcp.sessions.call_result import MOST_FILES, MOST_TOOLS
from threadkeep.mcp.sessions.incoming import IncomingMessages, LargeMessageReader
from threadkeep.mcp.sessions.tool_list import tools_of
from threadkeep.ports.tools import Returned, ReturnedFile


def result(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"content": list(content), **fields}


def outcome_of(result: dict[str, Any]) -> Returned:
    return IncomingMessages(LargeMessageReader()).returned(result)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type}


def test_texts_are_joined():
    assert outcome_of(result(text("one"), text("two"))) == Returned("ok", "one\n\ntwo")


def test_nothing_is_an_empty_text():
    assert outcome_of(result()) == Returned("ok", "")


def test_structured_content_is_the_result():
    returned = outcome_of(result(text('{"a": 1}'), structuredContent={"a": 1}))
    assert returned == Returned("ok", {"a": 1})


def test_chart_is_kept_apart_from_the_result():
    chart = {"series": [{"type": "bar", "data": [1]}]}
    returned = outcome_of(result(text("A chart."), structuredContent={"chart_data": chart, "rows": 1}))
    assert returned == Returned("ok", {"rows": 1}, chart_data=chart)
    alone = outcome_of(result(text("A chart."), structuredContent={"chart_data": chart}))
    assert alone == Returned("ok", "A chart.", chart_data=chart)


def test_failure_says_what_the_server_said():
    assert outcome_of(result(text("no luck"), isError=True)) == Returned("error", error="no luck")
    assert outcome_of(result(isError=True)).error == "The tool failed without giving a reason."


def test_link_is_shown_as_one():
    link = {"type": "resource_link", "uri": "https://example.org/a", "name": "a", "title": "An A"}
    assert outcome_of(result(link)).result == "[An A](https://example.org/a)"


async def test_images_and_resources_become_files(tmp_path: Path):
    async with pooled(tmp_path, Limits()) as here:
        picture = await here.call(chaos(), "picture")
        files = await here.call(chaos(), "files")
    (pixel,) = picture.files
    assert picture.result == "Here it is.\n\n[image-1.png]"
    assert (pixel.file_name, pixel.media_type, pixel.content[:4]) == ("image-1.png", "image/png", b"\x89PNG")
    assert files.files == (
        ReturnedFile("notes.txt", "text/plain", b"remember"),
        ReturnedFile("data.bin", "application/octet-stream", b"\x00\x01"),
    )
    assert files.result == "remember\n\n[data.bin]\n\n[A file was left out: its base64 is invalid.]"


def test_file_names_have_nothing_that_harms():
    def named(uri: str) -> str:
        blob = {"uri": uri, "blob": base64.b64encode(b"x").decode()}
        return outcome_of(result({"type": "resource", "resource": blob})).files[0].file_name

    assert named('file:///a/we"ird%0d%0aname%2e.txt') == "weirdname..txt"
    assert named("file:///") == named("x:..") == named("http://[") == "file-1.bin"
    assert len(named("file:///" + "a" * 5000)) == 100


def test_only_so_many_files_are_kept():
    returned = outcome_of(result(*[image(base64.b64encode(b"x").decode())] * (MOST_FILES + 1)))
    assert len(returned.files) == MOST_FILES
    assert returned.result.endswith("[A file was left out: a result can have at most 20.]")


def test_strange_media_type_is_not_believed():
    returned = outcome_of(result(image(base64.b64encode(b"x").decode(), "text/html; charset=x\r\n")))
    assert returned.files[0].media_type == "application/octet-stream"


def test_tools_are_bounded_and_have_one_name_each():
    names = ["same", "same", "", "n" * 129, *(f"tool{number}" for number in range(MOST_TOOLS + 5))]
    listed = [mcp.Tool(name=name, description="d" * 9000, input_schema={"type": "object"}) for name in names]
    tools = tools_of("server", listed, 7)
    assert [tool.name for tool in tools][:2] == ["same", "tool0"]
    assert len(tools) == MOST_TOOLS
    assert {len(tool.description) for tool in tools} == {8000}
    assert {(tool.server, tool.timeout_s, tool.is_own) for tool in tools} == {("server", 7, False)}
