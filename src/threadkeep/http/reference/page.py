"""The reference page at `/docs`: the OpenAPI document as one HTML page. No script, no other host.

`reference.html` holds the frame, the introduction and the style; here is what comes from the document.
"""

import re
import shlex
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from typing import Any

from threadkeep.http.reference.examples import Examples
from threadkeep.http.reference.html import CODE, as_json, code_list, marked, sample, table
from threadkeep.http.reference.schemas import Schemas

_HOST = "http://127.0.0.1:8710"
_ALIAS = re.compile(r"Alias of `(\w+ \S+)`\.")


def reference_page(document: dict[str, Any]) -> str:
    """The page."""
    frame = Template((resources.files("threadkeep.http.reference") / "reference.html").read_text("utf-8"))
    return frame.substitute(_Page(document).parts())


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    path: str
    spec: dict[str, Any]

    @property
    def id(self) -> str:
        return escape(self.spec["operationId"])

    @property
    def name(self) -> str:
        return self.id.replace("_", " ").capitalize()

    @property
    def badge(self) -> str:
        return f'<span class="method {escape(self.method.lower())}">{escape(self.method)}</span>'

    @property
    def call(self) -> str:
        return f'{self.badge} <code class="path">{escape(self.path).replace("/", "<wbr>/")}</code>'

    def codes(self) -> dict[str, list[str]]:
        """Error codes by status."""
        responses = self.spec["responses"].items()
        return {status: CODE.findall(it["description"]) for status, it in responses if status >= "4"}


class _Page:
    def __init__(self, document: dict[str, Any]) -> None:
        self._info = document["info"]
        self._schemas = Schemas(document["components"]["schemas"])
        self._examples = Examples(self._schemas)
        self._aliases: dict[str, list[_Operation]] = {}
        self._groups: dict[str, list[_Operation]] = {}
        self._operations = {
            f"{method.upper()} {path}": _Operation(method.upper(), path, spec)
            for path, methods in document["paths"].items()
            for method, spec in methods.items()
        }
        for operation in self._operations.values():
            alias = _ALIAS.fullmatch(operation.spec.get("description", ""))
            if alias and alias[1] in self._operations:
                self._aliases.setdefault(self._operations[alias[1]].id, []).append(operation)
            else:
                self._groups.setdefault(operation.spec["tags"][0], []).append(operation)

    def parts(self) -> dict[str, str]:
        """What the frame asks for."""
        codes: dict[str, list[str]] = {}
        for operation in self._operations.values():
            for status, names in operation.codes().items():
                codes[status] = list(dict.fromkeys([*codes.get(status, []), *names]))
        return {
            "host": _HOST,
            "title": escape(self._info["title"]),
            "version": escape(self._info["version"]),
            "description": marked(self._info.get("description", "")),
            "codes": code_list(codes),
            "navigation": "".join(_navigation(tag, group) for tag, group in self._groups.items()),
            "operations": "".join(self._group(tag, group) for tag, group in self._groups.items()),
            "schemas": self._schemas.articles(),
            "aliases": "".join(
                _alias(alias, operation)
                for operation in self._operations.values()
                for alias in self._aliases.get(operation.id, [])
            ),
        }

    def _group(self, tag: str, group: list[_Operation]) -> str:
        articles = "".join(self._operation(operation) for operation in group)
        name = escape(tag)
        return f'<section aria-labelledby="tag-{name}"><h2 id="tag-{name}">{name}</h2>{articles}</section>'

    def _operation(self, operation: _Operation) -> str:
        spec, anchor, name = operation.spec, operation.id, operation.name
        parameters = table(self._schemas.parameters(spec.get("parameters", [])))
        response = self._examples.response(spec)
        needs = f'<p class="note">{marked(_needs(spec))}</p>'
        return (
            f'<article id="{anchor}" aria-labelledby="{anchor}-name"><div class="description">'
            f'<h3 id="{anchor}-name"><a href="#{anchor}">{name}</a></h3>'
            f'<p class="call">{operation.call}</p>'
            f"<p>{marked(spec['summary'])}</p><p>{marked(spec.get('description', ''))}</p>{needs}"
            f"{parameters and f'<h4>Parameters</h4>{parameters}'}{self._body(spec)}{self._responses(spec)}"
            f'<h4>Errors</h4>{code_list(operation.codes())}</div><div class="shown">'
            f"{sample('Request', _curl(operation, self._examples.body(spec)))}"
            f"{'' if response is None else sample('Response', as_json(response, indent=2))}"
            "</div></article>"
        )

    def _body(self, spec: dict[str, Any]) -> str:
        parts: list[str] = []
        for media, content in spec.get("requestBody", {}).get("content", {}).items():
            schema = self._schemas.resolved(content["schema"])
            kind = "" if media == "application/json" else f" <small>{escape(media)}</small>"
            description = f"{self._schemas.type(content['schema'])}: {marked(schema.get('description', ''))}"
            fields = table(self._schemas.fields(schema, nested=True))
            parts.append(f"<h4>Body{kind}</h4><p>{description}</p>{fields}")
        return "".join(parts)

    def _responses(self, spec: dict[str, Any]) -> str:
        items: list[str] = []
        for status, response in spec["responses"].items():
            if status < "4":
                contents = response.get("content", {}).values()
                kinds = [self._schemas.type(content["schema"]) for content in contents]
                items.append(f"<li><b>{escape(status)}</b> {' or '.join(kinds) or 'without a body'}</li>")
        return f'<h4>Responses</h4><ul class="statuses">{"".join(items)}</ul>'


def _navigation(tag: str, group: list[_Operation]) -> str:
    links = "".join(f'<li><a href="#{each.id}">{each.badge} {each.name}</a></li>' for each in group)
    return f'<li><a href="#tag-{escape(tag)}">{escape(tag)}</a><ul>{links}</ul></li>'


def _needs(spec: dict[str, Any]) -> str:
    """Who may call an operation."""
    scopes = {name for scheme in spec.get("security", []) for names in scheme.values() for name in names}
    return f"Scope: `{scopes.pop()}`." if scopes else "No sign-in needed."


def _alias(alias: _Operation, original: _Operation) -> str:
    """One line: the call, and the error codes that only it has."""
    known = {code for codes in original.codes().values() for code in codes}
    own = [f"`{code}`" for codes in alias.codes().values() for code in codes if code not in known]
    errors = f", with the error {marked(', '.join(own))}" if own else ""
    is_that = f'is <a href="#{original.id}">{original.name}</a>{errors}'
    return f'<p class="note" id="{alias.id}">{alias.call} {is_that}</p>'


def _curl(operation: _Operation, body: dict[str, object] | None) -> str:
    path = re.sub(r"{(\w+)}", lambda name: f"${name[1].upper()}", operation.path)
    parameters = operation.spec.get("parameters", [])
    asked = [each["name"] for each in parameters if each["in"] == "query" and each.get("required")]
    query = "&".join(f"{name}=${name.upper()}" for name in asked)
    method = "" if operation.method == "GET" else f"-X {operation.method} "
    lines = [f'curl {method}"{_HOST}{path}{"?" if query else ""}{query}"']
    if operation.spec.get("security"):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if body is not None:
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(as_json(body))}"]
    return " \\\n  ".join(lines)
