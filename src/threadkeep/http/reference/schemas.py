"""The schemas of the OpenAPI document, for the reference page."""

from html import escape
from typing import Any

from threadkeep.http.reference.html import as_json, field_name, marked, table

Schema = dict[str, Any]

_NULL = {"type": "null"}
_LIMITS = ("minLength", "maxLength", "minItems", "maxItems", "pattern")


class Schemas:
    """All schemas by name, which refer to each other."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self._schemas = schemas

    def articles(self) -> str:
        """Each schema with its fields."""
        return "".join(self._article(name, schema) for name, schema in self._schemas.items())

    def resolved(self, schema: Schema) -> Schema:
        """What a reference refers to."""
        return self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def parameters(self, given: list[dict[str, Any]]) -> list[tuple[str, ...]]:
        """A row for each parameter of a call."""
        rows: list[tuple[str, ...]] = []
        for each in given:
            # A query string knows no null: it is left out.
            kinds = [kind for kind in _choices(each["schema"]) if kind != _NULL]
            schema = {"description": each.get("description", ""), "anyOf": kinds}
            if each["schema"].get("default") is not None:
                schema["default"] = each["schema"]["default"]
            mark = "required" if each.get("required") else ""
            rows.append((field_name(each["name"], mark), escape(each["in"]), *self._facts(schema)))
        return rows

    def fields(self, schema: Schema, *, nested: bool = False, of: str = "") -> list[tuple[str, ...]]:
        """A row for each field, and with `nested` for those of the objects in it."""
        rows: list[tuple[str, ...]] = []
        for name, field in schema.get("properties", {}).items():
            kind, default, *rest = self._facts(field)
            required = name in schema.get("required", ())
            # Clients must know what a request requires and what a response may lack.
            mark = "required" if nested and required else "" if nested or required else "optional"
            deeper = nested and of.count(".") < 3
            inner = self.fields(self.resolved(field), nested=True, of=f"{of}{name}.") if deeper else []
            # The fields of an object say what its default is.
            rows += [(field_name(of + name, mark), "", kind, "" if inner else default, *rest), *inner]
        return rows

    def type(self, schema: Schema) -> str:
        """A value's type, with a link to its description."""
        match schema:
            case {"$ref": str(ref)}:
                name = ref.rpartition("/")[2]
                title = self._schemas[name].get("title", name)
                return f'<a href="#schema-{escape(name)}">{escape(title)}</a>'
            case {"anyOf": _}:
                return " or ".join(self.type(each) for each in _choices(schema))
            case {"type": "array", "items": items}:
                return f"list of {self.type(items)}"
            case {"type": kind, "format": form}:
                return f"{escape(kind)} <small>{escape(form)}</small>"
            case {"enum": _}:
                return "string"
            case _:
                return escape(str(schema.get("type", "anything")))

    def _article(self, name: str, schema: Schema) -> str:
        _, _, values, description = self._facts(schema)
        return (
            f'<article id="schema-{escape(name)}"><h3>{escape(schema.get("title", name))}</h3>'
            f"<p>{description}</p><p>{values}</p>{table(self.fields(schema))}</article>"
        )

    def _facts(self, schema: Schema) -> tuple[str, str, str, str]:
        """Type, default, constraints and description."""
        default = f"<code>{escape(as_json(schema['default']))}</code>" if "default" in schema else ""
        limits: list[str] = []
        kinds = [self.resolved(each) for each in _choices(schema) if each != _NULL]
        description = schema.get("description") or (kinds[0].get("description") if len(kinds) == 1 else "")
        for meant in kinds:
            match meant:
                # A maximum that JSON numbers can't represent exactly isn't worth showing.
                case {"minimum": least, "maximum": most} if most < 2**53:
                    limits.append(f"{least:,} to {most:,}")
                case {"minimum": least}:
                    limits.append(f"at least {least:,}")
                case {"maximum": most}:
                    limits.append(f"at most {most:,}")
                case {"enum": values}:
                    limits.append(" or ".join(f"`{value}`" for value in values))
                case _:
                    limits += [f"{name} `{meant[name]}`" for name in _LIMITS if name in meant]
        return self.type(schema), default, marked(", ".join(limits)), marked(description or "")


def _choices(schema: Schema) -> list[Schema]:
    return schema.get("anyOf") or [schema]
