"""The reference page at `/docs`: the OpenAPI document as one HTML page. No script, no other host.

`reference.html` holds the frame, the introduction and the style; here is what comes from the document.
Every text of the document passes `escape` (or `_text`, which also marks `code`) on its way.
"""

import json
import re
import shlex
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from typing import Any

Schema = dict[str, Any]

_HOST = "http://127.0.0.1:8710"
_ALIAS = re.compile(r"The same as `(\w+ \S+)`\.")
_CODE = re.compile(r"`([^`]+)`")
_COLUMNS = ("Name", "In", "Type", "Default", "Constraints", "Description")
_NULL = {"type": "null"}
_LIMITS = ("minLength", "maxLength", "minItems", "maxItems", "pattern")

# What examples say, so that they read like an answer and not like a schema.
_BY_FORMAT = {"uuid": "0199a3f2-6c1e-7b40-9d52-3e8f0a71c9d4", "date-time": "2026-01-07T10:00:00.000Z"}
_BY_NAME = {
    **dict.fromkeys(("id", "userId", "ownerId", "actorId"), "alice"),
    **{"name": "Legal advisor", "title": "Contract review", "content": "What does clause 4 mean?"},
    **{"role": "user", "status": "ok"},
}
_TYPICAL = {"text", "COMPLETED", "ok"}


def reference_page(document: dict[str, Any]) -> str:
    """The page."""
    frame = Template((resources.files("threadkeep.http") / "reference.html").read_text("utf-8"))
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
        answers = self.spec["responses"].items()
        return {status: _CODE.findall(answer["description"]) for status, answer in answers if status >= "4"}


class _Page:
    def __init__(self, document: dict[str, Any]) -> None:
        self._info = document["info"]
        self._schemas: dict[str, Schema] = document["components"]["schemas"]
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
            "description": _text(self._info.get("description", "")),
            "codes": _codes(codes),
            "navigation": "".join(_navigation(tag, group) for tag, group in self._groups.items()),
            "operations": "".join(self._group(tag, group) for tag, group in self._groups.items()),
            "schemas": "".join(self._schema(name, schema) for name, schema in self._schemas.items()),
        }

    def _group(self, tag: str, group: list[_Operation]) -> str:
        articles = "".join(self._operation(operation) for operation in group)
        name = escape(tag)
        return f'<section aria-labelledby="tag-{name}"><h2 id="tag-{name}">{name}</h2>{articles}</section>'

    def _operation(self, operation: _Operation) -> str:
        spec, anchor, name = operation.spec, operation.id, operation.name
        also = "".join(_alias(alias, operation) for alias in self._aliases.get(anchor, []))
        free = "" if spec.get("security") else '<p class="note">No sign-in needed.</p>'
        return (
            f'<article id="{anchor}" aria-labelledby="{anchor}-name"><div class="told">'
            f'<h3 id="{anchor}-name"><a href="#{anchor}">{name}</a></h3>'
            f'<p class="call">{operation.call}</p>{also}'
            f"<p>{_text(spec['summary'])}</p><p>{_text(spec.get('description', ''))}</p>{free}"
            f"{self._parameters(spec)}{self._body(spec)}{self._answers(spec)}"
            f'<h4>Errors</h4>{_codes(operation.codes())}</div><div class="shown">'
            f"{_sample('Request', _curl(operation, self._body_example(spec)))}{self._answer_example(spec)}"
            "</div></article>"
        )

    def _parameters(self, spec: dict[str, Any]) -> str:
        rows: list[tuple[str, ...]] = []
        for each in spec.get("parameters", []):
            # A query string knows no null: it is left out.
            kinds = [kind for kind in _choices(each["schema"]) if kind != _NULL]
            schema = {"description": each.get("description", ""), "anyOf": kinds}
            if each["schema"].get("default") is not None:
                schema["default"] = each["schema"]["default"]
            mark = "required" if each.get("required") else ""
            rows.append((_name(each["name"], mark), escape(each["in"]), *self._facts(schema)))
        return f"<h4>Parameters</h4>{_table(rows)}" if rows else ""

    def _body(self, spec: dict[str, Any]) -> str:
        parts: list[str] = []
        for media, content in spec.get("requestBody", {}).get("content", {}).items():
            schema = self._resolved(content["schema"])
            kind = "" if media == "application/json" else f" <small>{escape(media)}</small>"
            told = f"{self._type(content['schema'])}: {_text(schema.get('description', ''))}"
            parts.append(f"<h4>Body{kind}</h4><p>{told}</p>{_table(self._fields(schema, nested=True))}")
        return "".join(parts)

    def _answers(self, spec: dict[str, Any]) -> str:
        items: list[str] = []
        for status, answer in spec["responses"].items():
            if status < "4":
                kinds = [self._type(content["schema"]) for content in answer.get("content", {}).values()]
                items.append(f"<li><b>{escape(status)}</b> {' or '.join(kinds) or 'without a body'}</li>")
        return f'<h4>Answers</h4><ul class="statuses">{"".join(items)}</ul>'

    def _schema(self, name: str, schema: Schema) -> str:
        _, _, values, description = self._facts(schema)
        return (
            f'<article id="schema-{escape(name)}"><h3>{escape(schema.get("title", name))}</h3>'
            f"<p>{description}</p><p>{values}</p>{_table(self._fields(schema))}</article>"
        )

    def _fields(self, schema: Schema, *, nested: bool = False, of: str = "") -> list[tuple[str, ...]]:
        """A row for each field, and with `nested` for those of the objects in it."""
        rows: list[tuple[str, ...]] = []
        for name, field in schema.get("properties", {}).items():
            kind, default, *rest = self._facts(field)
            required = name in schema.get("required", ())
            # Who sends asks what must be there, who reads asks what may be missing.
            mark = "required" if nested and required else "" if nested or required else "optional"
            deeper = nested and of.count(".") < 3
            inner = self._fields(self._resolved(field), nested=True, of=f"{of}{name}.") if deeper else []
            # The fields of an object tell its default.
            rows += [(_name(of + name, mark), "", kind, "" if inner else default, *rest), *inner]
        return rows

    def _facts(self, schema: Schema) -> tuple[str, str, str, str]:
        """Type, default, constraints and description."""
        default = f"<code>{escape(_json(schema['default']))}</code>" if "default" in schema else ""
        limits: list[str] = []
        kinds = [self._resolved(each) for each in _choices(schema) if each != _NULL]
        description = schema.get("description") or (kinds[0].get("description") if len(kinds) == 1 else "")
        for meant in kinds:
            match meant:
                # A maximum that JSON numbers do not hold exactly is nobody's concern.
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
        return self._type(schema), default, _text(", ".join(limits)), _text(description or "")

    def _type(self, schema: Schema) -> str:
        match schema:
            case {"$ref": str(ref)}:
                name = ref.rpartition("/")[2]
                title = self._schemas[name].get("title", name)
                return f'<a href="#schema-{escape(name)}">{escape(title)}</a>'
            case {"anyOf": _}:
                return " or ".join(self._type(each) for each in _choices(schema))
            case {"type": "array", "items": items}:
                return f"list of {self._type(items)}"
            case {"type": kind, "format": form}:
                return f"{escape(kind)} <small>{escape(form)}</small>"
            case {"enum": _}:
                return "string"
            case _:
                return escape(str(schema.get("type", "anything")))

    def _resolved(self, schema: Schema) -> Schema:
        return self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def _body_example(self, spec: dict[str, Any]) -> dict[str, object] | None:
        """The least that makes sense: the required fields, or else the first one."""
        content = spec.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            return None
        schema = self._resolved(content["schema"])
        fields: dict[str, Schema] = schema.get("properties", {})
        names = schema.get("required") or list(fields)[:1]
        return {name: self._example(fields[name], name) for name in names}

    def _answer_example(self, spec: dict[str, Any]) -> str:
        for status, answer in spec["responses"].items():
            content = answer.get("content", {}).get("application/json")
            if status < "4" and content:
                return _sample("Answer", _json(self._example(content["schema"]), indent=2))
        return ""

    def _example(self, schema: Schema, name: str = "", within: tuple[str, ...] = ()) -> object:
        ref = schema.get("$ref", "")
        if ref and ref in within:
            return {}
        within = (*within, ref)
        match self._resolved(schema):
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


def _navigation(tag: str, group: list[_Operation]) -> str:
    links = "".join(f'<li><a href="#{each.id}">{each.badge} {each.name}</a></li>' for each in group)
    return f'<li><a href="#tag-{escape(tag)}">{escape(tag)}</a><ul>{links}</ul></li>'


def _alias(alias: _Operation, original: _Operation) -> str:
    """One line: the call, and the codes that only it answers."""
    known = {code for codes in original.codes().values() for code in codes}
    own = [f"`{code}`" for codes in alias.codes().values() for code in codes if code not in known]
    told = f", with the error {_text(', '.join(own))}" if own else ""
    return f'<p class="note" id="{alias.id}">Also {alias.call}{told}</p>'


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
        lines += ['-H "Content-Type: application/json"', f"-d {shlex.quote(_json(body))}"]
    return " \\\n  ".join(lines)


def _sample(title: str, text: str) -> str:
    """A block of code that a keyboard can scroll; a long address breaks before a variable."""
    code = f'<pre tabindex="0"><code>{escape(text).replace("/$", "<wbr>/$")}</code></pre>'
    return f'<figure class="{title.lower()}"><figcaption>{title}</figcaption>{code}</figure>'


def _codes(codes: dict[str, list[str]]) -> str:
    items = (
        f"<li><b>{escape(status)}</b> {' '.join(f'<code>{escape(name)}</code>' for name in names)}</li>"
        for status, names in sorted(codes.items())
    )
    return f'<ul class="statuses">{"".join(items)}</ul>'


def _table(rows: list[tuple[str, ...]]) -> str:
    """A table of the columns that have something to say."""
    used = [number for number in range(len(_COLUMNS)) if any(row[number] for row in rows)]
    heads = "".join(f'<th scope="col">{_COLUMNS[number]}</th>' for number in used)
    lines = (
        "".join(f'<td class="{_COLUMNS[number].lower()}">{row[number]}</td>' for number in used)
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>" if rows else ""


def _name(name: str, mark: str) -> str:
    return f"<code>{escape(name)}</code>" + (f' <em class="{mark}">{mark}</em>' if mark else "")


def _choices(schema: Schema) -> list[Schema]:
    return schema.get("anyOf") or [schema]


def _text(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)
