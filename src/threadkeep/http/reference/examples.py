"""Examples for the reference page: they read like a request and a response, not like a schema."""

from typing import Any

from threadkeep.http.reference.schemas import Schema, Schemas

_BY_FORMAT = {"uuid": "0199a3f2-6c1e-7b40-9d52-3e8f0a71c9d4", "date-time": "2026-01-07T10:00:00.000Z"}
_BY_NAME = {
    **dict.fromkeys(("id", "userId", "ownerId", "actorId"), "alice"),
    **{"name": "Legal advisor", "title": "Contract review", "content": "What does clause 4 mean?"},
    **{"role": "user", "status": "ok"},
}
_TYPICAL = {"text", "COMPLETED", "ok"}


class Examples:
    """Makes them from the schemas."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def body(self, spec: dict[str, Any]) -> dict[str, object] | None:
        """The least that makes sense: the required fields, or else the first one."""
        content = spec.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            return None
        schema = self._schemas.resolved(content["schema"])
        fields: dict[str, Schema] = schema.get("properties", {})
        names = schema.get("required") or list(fields)[:1]
        return {name: self._example(fields[name], name) for name in names}

    def response(self, spec: dict[str, Any]) -> object:
        """The response to a call that succeeds; None without a body."""
        for status, response in spec["responses"].items():
            content = response.get("content", {}).get("application/json")
            if status < "4" and content:
                return self._example(content["schema"])
        return None

    def _example(self, schema: Schema, name: str = "", within: tuple[str, ...] = ()) -> object:
        ref = schema.get("$ref", "")
        if ref and ref in within:
            return {}
        within = (*within, ref)
        match self._schemas.resolved(schema):
            case {"examples": [first, *_]}:
                return first
            case {"default": default} if default is not None:
                return default
            case {"enum": values}:
                return next((value for value in values if value in _TYPICAL), values[0])
            case {"anyOf": [first, *_]}:
                return self._example(first, name, within)
            case {"type": "array", "items": items}:
                return [self._example(items, name, within)]
            case {"type": "string", **rest}:
                return _BY_FORMAT.get(rest.get("format", ""), _BY_NAME.get(name, "…"))
            case {"type": "integer" | "number", **rest}:
                return rest.get("minimum", 1)
            case {"type": "boolean"}:
                return False
            case {"properties": properties, **rest}:
                # The example is of what went well.
                names = [each for each in properties if each != "error" or each in rest.get("required", ())]
                return {each: self._example(properties[each], each, within) for each in names}
            case _:
                return {}
