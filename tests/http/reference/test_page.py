"""The reference page: complete, self-contained, escaped."""

import copy
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from threadkeep.http.openapi import openapi
from threadkeep.http.reference.page import reference_page
from threadkeep.http.routes import ROUTES

DOCUMENT = openapi(ROUTES)
OPERATIONS = [
    pytest.param(method.upper(), path, spec, id=spec["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, spec in methods.items()
]
VOID = {"meta", "link", "wbr", "path"}


class Page(HTMLParser):
    """What is on a page: ids, links, tags, the text within each id; it must be well-formed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: dict[str, str] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes |= set(given)
        self.ids += [id_ for id_ in [given.get("id")] if id_ is not None]
        self.links += [link for link in [given.get("href"), given.get("src")] if link is not None]
        if tag not in VOID:
            self._open.append((tag, given.get("id")))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, id_ in self._open:
            if id_ is not None:
                self.texts[id_] = self.texts.get(id_, "") + data


@pytest.fixture(scope="module")
def html() -> str:
    return reference_page(DOCUMENT)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.mark.parametrize(("method", "path", "spec"), OPERATIONS)
def test_every_operation_has_its_place(page: Page, method: str, path: str, spec: dict[str, Any]):
    text = page.texts[spec["operationId"]]
    assert f"{method} {path}" in text
    if spec.get("description", "").startswith("Alias of"):
        assert spec["summary"] not in text, "an alias is one line, not the whole text again"
        return
    assert f"#{spec['operationId']}" in page.links
    assert spec["summary"].replace("`", "") in text
    assert "curl " in text
    scopes = {name for scheme in spec["security"] for names in scheme.values() for name in names}
    assert (f"Scope: {scopes.pop()}." if scopes else "No sign-in needed.") in text
    for parameter in spec["parameters"]:
        assert parameter["name"] in text
    for status, response in spec["responses"].items():
        assert status in text
        if status >= "4":
            assert all(code in text for code in re.findall(r"`(\w+)`", response["description"]))


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_schema_is_told_with_its_fields(page: Page, name: str):
    text = page.texts[f"schema-{name}"]
    assert all(field in text for field in DOCUMENT["components"]["schemas"][name].get("properties", {}))


def test_ids_are_unique_and_links_lead_somewhere(page: Page):
    assert len(page.ids) == len(set(page.ids))
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)


def test_nothing_comes_from_another_host(html: str, page: Page):
    assert set(re.findall(r"\w*:?//[^/\s\"'<]*", html)) == {"http://127.0.0.1:8710"}
    others = {link for link in page.links if not link.startswith(("#", "data:image/svg+xml,"))}
    assert others == {"openapi.json"}
    assert not re.search(r"url\(|@import", html)


def test_the_strictest_policy_holds(page: Page):
    """`default-src 'none'; style-src 'unsafe-inline'; img-src data:` is enough for the page."""
    assert not {"script", "iframe", "form", "img", "base"} & set(page.tags)
    assert not any(name.startswith("on") for name in page.attributes)


def test_landmarks_and_headings_are_in_order(page: Page):
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert page.tags.count(tag) == 1
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(following <= level + 1 for level, following in pairwise(levels))
    assert "#main-content" in page.links


def test_body_is_told_to_its_depth_with_a_minimal_example(page: Page):
    text = page.texts["create_agent"]
    assert "settings.retrievalTopK" in text
    assert """-d '{"name": "Legal advisor"}'""" in text
    assert "-d '" in page.texts["send_message"], "a body without required fields shows its first one"
    assert "-d '" not in page.texts["restore_conversation"]


def test_call_without_sign_in_shows_no_token(page: Page):
    assert "Bearer" not in page.texts["get_health"]
    assert "Bearer $TOKEN" in page.texts["get_me"]


EVIL = "\"><script>alert('x')</script>&`<b>`$host"


SAID = {"title", "description", "summary", "default", "version", "format", "in"}


def poisoned(value: Any, key: str = "") -> Any:
    """The document with every text for people, every default and every value of an enum made evil."""
    match value:
        case dict():
            fields: dict[str, Any] = {**value}
            return {name: poisoned(each, name) for name, each in fields.items()}
        case [*items]:
            return [EVIL] if key == "enum" else [poisoned(each) for each in items]
        case _:
            return EVIL if key in SAID else value


def test_malicious_texts_are_escaped(html: str):
    evil = reference_page(poisoned(copy.deepcopy(DOCUMENT)))
    assert evil.count(EVIL[2:10]) == 0
    assert evil.count("&quot;&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;") > 100
    assert set(Page(evil).tags) == set(Page(html).tags)


def test_malicious_names_are_escaped():
    spec = {**DOCUMENT["paths"]["/api/me"]["get"], "operationId": EVIL, "tags": [EVIL]}
    spec["parameters"] = [{"name": EVIL, "in": "query", "required": True, "schema": {"type": "string"}}]
    spec["responses"] = {"200": {"description": ""}, f"4{EVIL}": {"description": f"`{EVIL}`"}}
    evil = reference_page({**DOCUMENT, "paths": {f"/{EVIL}": {EVIL: spec}}})
    assert "<script" not in evil.lower()
    assert len(Page(evil).ids) == len(set(Page(evil).ids))


def test_schema_that_contains_itself_ends():
    document = copy.deepcopy(DOCUMENT)
    schemas = document["components"]["schemas"]
    schemas["AgentBody"]["properties"]["parent"] = {"$ref": "#/components/schemas/AgentBody"}
    schemas["AgentView"]["properties"]["parent"] = {"$ref": "#/components/schemas/AgentView"}
    assert "parent.parent.name" in Page(reference_page(document)).texts["create_agent"]


def test_page_is_small(html: str):
    # About 710 kB for 145 operations; most of it is what they say. It grows with the API.
    assert len(html.encode()) < 760_000
