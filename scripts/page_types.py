"""Writes web/packages/client/src/schema.ts: the types of our OpenAPI document, for the client and the page.

    python scripts/page_types.py

A test compares the file with the live document.
"""

import json
import re
from pathlib import Path
from typing import Any

from threadkeep.http.openapi import openapi
from threadkeep.http.routes import ROUTES

FILE = Path(__file__).resolve().parents[1] / "web/packages/client/src/schema.ts"
HEAD = "// Made from the OpenAPI document by scripts/page_types.py; do not edit.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def types() -> str:
    """The file's text."""
    schemas: dict[str, Any] = openapi(ROUTES)["components"]["schemas"]
    return HEAD + "".join(f"\n{_declaration(name, schemas[name])}\n" for name in sorted(schemas))


def _declaration(name: str, schema: dict[str, Any]) -> str:
    comment = f"/** {schema['description']} */\n" if schema.get("description") else ""
    if schema.get("type") == "object" and "properties" in schema:
        return f"{comment}export interface {_identifier(name)} {_members(schema)}"
    return f"{comment}export type {_identifier(name)} = {_type(schema)};"


def _members(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = [
        f"  {_key(name)}{'' if name in required else '?'}: {_type(value)};\n"
        for name, value in schema["properties"].items()
    ]
    return "{\n" + "".join(lines) + "}"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _type(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": ref}:
            return _identifier(ref.rpartition("/")[2])
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"const": value}:
            return json.dumps(value)
        case {"anyOf": options} | {"oneOf": options}:
            return " | ".join(dict.fromkeys(map(_type, options)))
        case {"type": "array"}:
            item = _type(schema.get("items", {}))
            return f"({item})[]" if " | " in item else f"{item}[]"
        case {"type": "object", "properties": _}:
            return _members(schema).replace("\n", " ")
        case {"type": "object"}:
            return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
        case {"type": list(kinds)}:
            return " | ".join(_type({**schema, "type": kind}) for kind in kinds)
        case {"type": kind}:
            return _PLAIN[kind]
        case _:
            return "unknown"


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


if __name__ == "__main__":
    FILE.write_text(types(), encoding="utf-8")
