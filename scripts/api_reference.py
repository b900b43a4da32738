"""Writes docs/api.md: the OpenAPI document, for people without a running server.

    python scripts/api_reference.py

A test compares the file with the live document.
"""

import json
import re
from pathlib import Path
from typing import Any

from threadkeep.http.openapi import described, openapi
from threadkeep.http.routes import ROUTES

FILE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD = """# API reference

Generated from the OpenAPI document by `scripts/api_reference.py`; do not edit. A running server shows the
same reference at `/docs`, with an example for every endpoint, and serves the OpenAPI document at
`/openapi.json`.

The API uses JSON over HTTP with `camelCase` fields (the events of a turn have `snake_case` ones), RFC 3339
times in UTC, and UUIDs as ids. [Concepts](concepts.md) explains the terms and the pagination of
[lists](concepts.md#lists); [errors and notices](errors.md) lists every code, with what to do;
[limits](limits.md), every limit; [the front-end guide](front-end.md#what-to-draw) describes the events of a
stream. If the server has sign-in, every endpoint requires `Authorization: Bearer …` unless marked otherwise,
and can also return 401
`UNAUTHENTICATED`, 403 `FORBIDDEN`, 408 `REQUEST_TIMEOUT`, 413 `PAYLOAD_TOO_LARGE`, 422 `INVALID_REQUEST`,
431 `HEADERS_TOO_LARGE` or 503 `STORAGE_UNAVAILABLE`. Fields marked with ? are optional. "Scope" is what an
[API key](keys.md) needs for an operation. Some paths and fields have a second name:
[names from the specifications](names.md).
"""
ANYWHERE = {
    "UNAUTHENTICATED",
    "FORBIDDEN",
    "REQUEST_TIMEOUT",
    "PAYLOAD_TOO_LARGE",
    "INVALID_REQUEST",
    "HEADERS_TOO_LARGE",
    "STORAGE_UNAVAILABLE",
}
_PAGE = re.compile(r"PageView_(\w+)_")
_CODE = re.compile(r"`([^`]+)`")

Schema = dict[str, Any]


def reference() -> str:
    """The file's text."""
    document = openapi(ROUTES)
    aliases = {route.path for route in ROUTES if route.alias_of}
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path not in aliases:
                text = _operation(method.upper(), path, operation)
                by_tag.setdefault(operation["tags"][0], []).append(text)
    groups = "".join(f"\n## {tag}\n{''.join(texts)}" for tag, texts in by_tag.items())
    schemas = document["components"]["schemas"]
    objects = "".join(_object(name, schemas[name]) for name in sorted(schemas) if not _PAGE.fullmatch(name))
    in_paths = f"\n## In paths\n\n{_in_paths(document)}"
    return f"{HEAD}{in_paths}{groups}\n## Objects\n{objects}"


def _in_paths(document: Schema) -> str:
    """What stands in paths, which is the same in all of them."""
    parameters = (
        it for path in document["paths"].values() for each in path.values() for it in each["parameters"]
    )
    texts = {it["name"]: it["description"] for it in parameters if it["in"] == "path"}
    return _table(("name", "what it is"), [(f"`{name}`", text) for name, text in sorted(texts.items())])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    scopes = {name for scheme in operation["security"] for names in scheme.values() for name in names}
    needs = f"Scope: `{scopes.pop()}`. " if scopes else "No sign-in needed. "
    summary = operation["summary"].rstrip(".") + "."
    parts = [f"\n### `{method} {path}`\n\n{summary} {needs}".rstrip() + "\n"]
    if more := operation.get("description"):
        parts.append(f"\n{more.strip()}\n")
    parameters = [it for it in operation["parameters"] if it["in"] != "path"]
    if parameters:
        rows = [
            (f"`{it['name']}`", it["in"], _type(it["schema"]), _default(it["schema"]), it["description"])
            for it in parameters
        ]
        parts.append("\n" + _table(("parameter", "in", "type", "default", ""), rows))
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        kind = "" if media == "application/json" else f" ({media})"
        fields = _fields(content["schema"])
        parts.append(
            f"\nBody{kind}:\n\n{fields}" if fields else f"\nBody{kind}: {_type(content['schema'])}\n"
        )
    parts.append(f"\n{_answers(operation['responses'])}\n")
    return "".join(parts)


def _answers(responses: dict[str, Any]) -> str:
    told: list[str] = []
    for status, answer in responses.items():
        if status < "4":
            kinds = [_type(it["schema"], media) for media, it in answer.get("content", {}).items()]
            told.append(f"{status} {' or '.join(kinds)}".strip())
        else:
            codes = [code for code in _CODE.findall(answer["description"]) if code not in ANYWHERE]
            told += [f"{status} {', '.join(f'`{code}`' for code in codes)}"] if codes else []
    return "Returns " + " · ".join(told)


def _object(name: str, schema: Schema) -> str:
    parts = [f"\n### {schema.get('title', name)}\n"]
    if schema.get("description"):
        parts.append(f"\n{' '.join(schema['description'].split())}\n")
    if "enum" in schema:
        parts.append(f"\n{_type(schema)}\n")
    if fields := _fields(schema):
        parts.append(f"\n{fields}")
    return "".join(parts)


def _fields(schema: Schema) -> str:
    """A table of an object's fields."""
    required = set(schema.get("required", ()))
    rows = [
        (f"`{field}`" + ("" if field in required else " ?"), _type(it), _default(it), described(it))
        for field, it in schema.get("properties", {}).items()
    ]
    return _table(("field", "type", "default", ""), rows) if rows else ""


def _type(schema: Schema, media: str = "application/json") -> str:
    match schema:
        case _ if media != "application/json":
            return f"`{media}`"
        case {"$ref": ref}:
            name = ref.rpartition("/")[2]
            if page := _PAGE.fullmatch(name):
                return f"page of [{page[1]}](#{page[1].lower()})"
            return f"[{name}](#{name.lower()})"
        case {"enum": values}:
            return " or ".join(f"`{it if isinstance(it, str) else json.dumps(it)}`" for it in values)
        case {"anyOf": options} | {"oneOf": options}:
            return " or ".join(dict.fromkeys(map(_type, options)))
        case {"type": "array", **rest}:
            return f"list of {_type(rest.get('items', {}))}"
        case {"type": "object", "additionalProperties": dict()}:
            return f"object of {_type(schema['additionalProperties'])}"
        case {"type": "string", "format": form}:
            return str(form)
        case {"type": kind}:
            return f"{kind}{_limits(schema)}"
        case _:
            return "anything"


def _limits(schema: Schema) -> str:
    least = schema.get("minimum", schema.get("minLength", schema.get("exclusiveMinimum")))
    most = schema.get("maximum", schema.get("maxLength"))
    if most is not None and most > 2**40:
        most = None
    if least is None and most is None:
        return ""
    return f" ({'' if least is None else least}…{'' if most is None else most})"


def _default(schema: Schema) -> str:
    """The default of a plain value; the fields of an object have their own."""
    default = schema.get("default")
    is_plain = default not in (None, "", []) and not isinstance(default, dict)
    return f"`{json.dumps(default, ensure_ascii=False)}`" if is_plain else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table of the columns that have something to say."""
    used = [number for number in range(len(head)) if any(row[number] for row in rows)]
    lines = [[head[number] for number in used], ["---"] * len(used)]
    lines += [[row[number].replace("|", "\\|") for number in used] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
