"""The OpenAPI document as tests use it: what it promises decides what they try."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.http.calls import Json
from threadkeep.http.openapi import openapi
from threadkeep.http.routes import ROUTES

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
DOCUMENT: Json = openapi(ROUTES)


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the document tells of it."""

    method: str
    path: str
    spec: Json

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def path_names(self) -> list[str]:
        """The names in the path."""
        return re.findall(r"{(\w+)}", self.path)

    @property
    def query_names(self) -> set[str]:
        """The parameters that may stand in the query."""
        return {it["name"] for it in self.spec["parameters"] if it["in"] == "query"}

    def query_takes_text(self, name: str) -> bool:
        """Whether any text may stand for a parameter of the query."""
        (schema,) = [it["schema"] for it in self.spec["parameters"] if it["name"] == name]
        return mismatch("text", schema) is None

    @property
    def needed_query(self) -> dict[str, str]:
        """An example of every parameter that must stand in the query."""
        needed = [it for it in self.spec["parameters"] if it["in"] == "query" and it["required"]]
        return {it["name"]: example(it["schema"]) for it in needed}

    @property
    def takes_files(self) -> bool:
        """Whether files are sent to it."""
        return "multipart/form-data" in self.spec.get("requestBody", {}).get("content", {})

    @property
    def body(self) -> Json | None:
        """The schema of the body, if it takes JSON."""
        content = self.spec.get("requestBody", {}).get("content", {})
        return content["application/json"]["schema"] if "application/json" in content else None

    @property
    def needs_sign_in(self) -> bool:
        """Whether it asks who one is."""
        return bool(self.spec["security"])

    def codes(self, status: int) -> set[str]:
        """The error codes that it may give with a status."""
        return set(
            re.findall(
                r"`(\w+)`", self.spec["responses"].get(str(status), {"description": ""})["description"]
            )
        )

    def url(self, **ids: str) -> str:
        """The path with these ids; a name in the path without one is an error."""
        return self.path.format(**ids)


def operations(document: Json = DOCUMENT) -> list[Operation]:
    """Every operation of a document."""
    return [
        Operation(method.upper(), path, spec)
        for path, methods in document["paths"].items()
        for method, spec in methods.items()
        if method in METHODS
    ]


def resolved(schema: Json, document: Json = DOCUMENT) -> Json:
    """A schema, or what it refers to."""
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def example(schema: Json, *, whole: bool = False) -> Any:
    """A value that a schema allows, with everything that it requires; `whole`: with everything it knows."""
    schema = resolved(schema)
    if "default" in schema and not whole:
        return schema["default"]
    for given in ("examples", "enum"):
        if given in schema:
            return schema[given][0]
    if "anyOf" in schema:
        return example(next(it for it in schema["anyOf"] if it.get("type") != "null"), whole=whole)
    match schema.get("type"):
        case "object":
            known: Json = schema.get("properties", {})
            names = known if whole else schema.get("required", ())
            return {name: example(known[name], whole=whole) for name in names}
        case "array":
            return [example(schema["items"])] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "string":
            return "2999-01-01T00:00:00.000Z" if schema.get("format") == "date-time" else "text"
        case _:
            return {}


def fields(schema: Json, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every field of a body, also those of objects within it, with the way to it."""
    for name, inner in resolved(schema).get("properties", {}).items():
        yield (*place, name), inner
        yield from fields(inner, (*place, name))


def mismatch(value: Any, schema: Json, place: str = "$") -> str | None:
    """Where a value does not fit a schema, or None. An object may have no field that is not declared."""
    schema = resolved(schema)
    if "anyOf" in schema:
        found = [mismatch(value, it, place) for it in schema["anyOf"]]
        return None if None in found else "; ".join(filter(None, found))
    if "enum" in schema and value not in schema["enum"]:
        return f"{place}: {value!r} is not one of {schema['enum']}"
    kind = schema.get("type")
    if kind and not _is(value, kind):
        return f"{place}: {value!r} is no {kind}"
    if isinstance(value, dict):
        return _object_mismatch(value, schema, place)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list) and "items" in schema:
        of_items = (mismatch(it, schema["items"], f"{place}[]") for it in value)  # pyright: ignore[reportUnknownVariableType]
        return next(filter(None, of_items), None)
    return _format_mismatch(value, schema, place)


def _object_mismatch(value: Json, schema: Json, place: str) -> str | None:
    properties: Json = schema.get("properties", {})
    if missing := set(schema.get("required", ())) - value.keys():
        return f"{place}: {missing} are missing"
    for name, inner in value.items():
        expected = properties.get(name, schema.get("additionalProperties", not properties))
        if expected is False:
            return f"{place}: {name} is not declared"
        if isinstance(expected, dict) and (found := mismatch(inner, expected, f"{place}.{name}")):  # pyright: ignore[reportUnknownArgumentType]
            return found
    return None


_FORMATS = {
    "uuid": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
}


def _format_mismatch(value: Any, schema: Json, place: str) -> str | None:
    form = _FORMATS.get(schema.get("format", ""))
    if form and isinstance(value, str) and not form.fullmatch(value):
        return f"{place}: {value!r} is no {schema['format']}"
    return None


def _is(value: Any, kind: str) -> bool:
    if kind in {"integer", "number"}:
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[kind])


_PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", operation.path)), operation) for operation in operations()]


def operation_of(method: str, path: str) -> Operation | None:
    """The operation that a request is for, if it is for one. A path of its own is no id in another."""
    fitting = [it for form, it in _PATTERNS if form.fullmatch(path)]
    found = [it for it in fitting if it.path == path] or fitting
    return next((it for it in found if it.method == method), None)


async def check_response(response: httpx.Response) -> None:
    """Fails unless the document promises this response, see `check`, or if it sends a header twice."""
    names = [name for name, _ in response.headers.multi_items() if name not in {"set-cookie", "vary"}]
    assert len(names) == len({*names}), f"{response.request.url}: {names}"
    operation = operation_of(response.request.method, response.request.url.path)
    if operation is not None:
        check(operation, response.status_code, response.headers, await response.aread())


def check(operation: Operation, status: int, headers: Mapping[str, str], content: bytes) -> None:
    """Fails unless the document promises a response: its status, its error code, every field and header."""
    told = operation.spec["responses"].get(str(status))
    assert told, f"{operation} answers {status}, which is not documented"
    missing = [name for name, header in told["headers"].items() if header["required"] and name not in headers]
    assert not missing, f"{operation} {status}: {missing} are missing"
    if "content" not in told:
        assert content == b"", f"{operation} documents no content"
        return
    kind = headers["content-type"].partition(";")[0]
    documented = kind in told["content"] or "*/*" in told["content"]
    assert documented, f"{operation} {status}: {kind} is not documented"
    if kind != "application/json" or "application/json" not in told["content"]:
        return
    response = json.loads(content)
    wrong = mismatch(response, told["content"]["application/json"]["schema"])
    assert wrong is None, f"{operation} {status}: {wrong}"
    if status >= 400:
        code = response["error"]["code"]
        assert code in operation.codes(status), f"{operation}: {code} is not documented"
