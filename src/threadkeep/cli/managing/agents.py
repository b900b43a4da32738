"""`threadkeep agent`: lists, shows, creates, changes and deletes agents."""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import UNSET

from threadkeep.cli.commands import text_of
from threadkeep.cli.managing.actions import (
    add_action,
    add_json,
    confirm,
    print_json,
    print_table,
    secrets_from,
    tell_of_rules,
)
from threadkeep.cli.managing.agent_files import FIELDS, written
from threadkeep.cli.target import no_such_agent
from threadkeep.client.client import Client
from threadkeep.domain.errors import Forbidden, InvalidRequest
from threadkeep.wire.views import AgentDetailView, AgentView

MOST_SHOWN = 300

_SETTING = re.compile(r"[A-Za-z]+(?:\.[^=]+)?")


def add_agent(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = command.add_subparsers(required=True, metavar="ACTION")
    add_json(add_action(actions, "list", _list, "list your own agents and the public ones"))
    show = add_action(actions, "show", _show, "show an agent with its prompt, settings and MCP servers")
    _add_which(show)
    form = show.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print it as the API returns it, for programs")
    form.add_argument("--toml", action="store_true", help="print a file for `threadkeep apply`")
    create = add_action(actions, "create", _create, "create an agent; you become its owner")
    create.add_argument("name", help="what the agent is called")
    _add_fields(create)
    change = add_action(actions, "change", _change, "change what you name of an agent, and nothing else")
    _add_which(change)
    change.add_argument("--name", help="its new name")
    _add_fields(change)
    delete = add_action(actions, "delete", _delete, "delete an agent; its conversations stay readable")
    _add_which(delete)
    delete.add_argument("--yes", action="store_true", help="don't ask")


async def find_own_agent(client: Client, name: str) -> AgentDetailView:
    """The one agent with this name or id that its caller can change."""
    found = await _named(client, name)
    own = [it for it in found if it.version is not UNSET]
    if len(own) > 1:
        ids = ", ".join(it.id for it in own)
        raise InvalidRequest(f"{len(own)} agents are called {name!r}. Name one by its id: {ids}.")
    if not own:
        raise Forbidden(f"Only its owner and admins can see or change more of {found[0].name!r}.")
    return await client.agent(own[0].id)


async def _named(client: Client, name: str) -> Sequence[AgentView]:
    every = [it async for it in client.agents()]
    found = [it for it in every if it.id == name or it.name.casefold() == name.casefold()]
    if not found:
        raise no_such_agent(name, every)
    return found


def _add_which(action: argparse.ArgumentParser) -> None:
    action.add_argument("agent", metavar="AGENT", help="its name or its id")


def _add_fields(action: argparse.ArgumentParser) -> None:
    action.add_argument("--description", help="what it is for")
    action.add_argument(
        "--system-prompt", type=Path, metavar="FILE", help="a file with its instructions; - reads them"
    )
    action.add_argument("--model", help="a model's id; empty for the server's default")
    action.add_argument("--visibility", choices=["private", "public"], help="who may talk to it")
    action.add_argument(
        "--ag-ui",
        metavar="URL",
        help="the address of a server that runs it and speaks AG-UI; empty has Threadkeep run it again",
    )
    action.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=VARIABLE",
        help="a header that this address gets, with the value that VARIABLE has here",
    )
    action.add_argument(
        "--repeat",
        action=argparse.BooleanOptionalAction,
        help="whether a run that the server didn't end may be made again (no)",
    )
    action.add_argument("--role", metavar="ID", help="the role that its prompt starts with (assistant)")
    action.add_argument(
        "--set",
        action="append",
        type=_setting,
        metavar="SETTING=VALUE",
        help="one of its settings by its name in the API, for example contextMessages=40 or "
        "tools.web.*.access=ask; null restores the default; repeat for several",
    )
    add_json(action)


def _setting(text: str) -> tuple[list[str], object]:
    name, equals, value = text.partition("=")
    if not equals or not _SETTING.fullmatch(name):
        raise argparse.ArgumentTypeError(f"{text!r} is not like contextMessages=40")
    return _steps(name), _value(value)


def _steps(name: str) -> list[str]:
    """The keys to a setting; a tool's name has dots itself."""
    first, *others = name.split(".")
    return [first, ".".join(others[:-1]), others[-1]] if len(others) > 1 else [first, *others]


def _value(text: str) -> object:
    """JSON, or else a text as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fields(given: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say, in the API's names."""
    said = {
        "description": given.description,
        "systemPrompt": None if given.system_prompt is None else text_of(given.system_prompt),
        "visibility": given.visibility,
        "primaryRoleId": given.role,
    }
    fields: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if given.model is not None:
        fields["model"] = given.model or None
    engine = {"headers": secrets_from(given.header), "repeat": given.repeat}
    if changed := {name: value for name, value in engine.items() if value not in (None, {})}:
        fields["engine"] = changed
    if given.ag_ui is not None:
        fields["engine"] = {"kind": "ag-ui", "url": given.ag_ui, **changed} if given.ag_ui else None
    for steps, value in given.set or ():
        place: dict[str, Any] = fields.setdefault("settings", {})
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
    return fields


async def _list(client: Client, given: argparse.Namespace) -> None:
    agents = [it async for it in client.agents()]
    if given.json:
        print_json(agents)
        return
    print_table(("NAME", "MODEL", "VISIBILITY", "YOURS", "ID"), map(_row, agents))
    for agent in agents:
        tell_of_rules(agent)


def _row(agent: AgentView) -> tuple[str, ...]:
    model = "" if agent.model is UNSET else agent.model or "(default)"
    model = {"code": "(in code)", "ag-ui": f"(at {agent.engine.host})"}.get(agent.engine.kind, model)
    can_change = "" if agent.version is UNSET else "yes"
    return agent.name, model, agent.visibility, can_change, agent.id


async def _show(client: Client, given: argparse.Namespace) -> None:
    if given.toml:
        await _show_file(client, await find_own_agent(client, given.agent))
        return
    found = await _named(client, given.agent)
    agent = await client.agent(next((it for it in found if it.version is not UNSET), found[0]).id)
    tell_of_rules(agent)
    if given.json:
        print_json(agent)
        return
    shown = cast("dict[str, Any]", msgspec.to_builtins(agent))
    shown["mcpServers"] = {it["name"]: it.get("error") or it["status"] for it in shown.get("mcpServers", ())}
    for name, value in _flat(shown):
        print(f"{name} = {value}")


async def _show_file(client: Client, agent: AgentDetailView) -> None:
    """Prints what differs from an agent with a name alone: what a file has to say."""
    nothing: dict[str, Any] = dict.fromkeys(it for it in FIELDS if it != "name")
    if agent.is_default:
        del nothing["visibility"]  # it can't be private
    changes = (await client.preview_agent(nothing, agent_id=agent.id)).changes
    print(written(agent.name, ((it.path, it.before) for it in changes if it.before is not None)), end="")


def _flat(fields: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Fields in fields by their names with dots."""
    lines: list[tuple[str, str]] = []
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            lines += _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            text = json.dumps(value, ensure_ascii=False)
            lines.append((prefix + name, text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"))
    return lines


async def _create(client: Client, given: argparse.Namespace) -> None:
    fields = _fields(given)
    made = await client.create_agent(
        given.name,
        description=fields.get("description"),
        primary_role_id=fields.get("primaryRoleId"),
        system_prompt=fields.get("systemPrompt"),
        model=fields.get("model"),
        visibility=fields.get("visibility"),
        settings=fields.get("settings"),
        engine=fields.get("engine"),
    )
    _say("Created", made, given)


async def _change(client: Client, given: argparse.Namespace) -> None:
    patch = _fields(given) | ({"name": given.name} if given.name is not None else {})
    if not patch:
        raise InvalidRequest("Say what to change, for example --model or --set; --help lists it all.")
    agent = await find_own_agent(client, given.agent)
    _say("Changed", await client.update_agent(agent.id, patch, version=agent.version), given)


def _say(done: str, agent: AgentView, given: argparse.Namespace) -> None:
    if given.json:
        print_json(agent)
    else:
        print(f"{done} {agent.name} ({agent.id}).")
    tell_of_rules(agent)


async def _delete(client: Client, given: argparse.Namespace) -> int:
    agent = await find_own_agent(client, given.agent)
    if not confirm(f"Delete {agent.name} ({agent.id})?", yes=given.yes):
        print("Nothing was deleted.")
        return 1
    await client.delete_agent(agent.id)
    print(f"Deleted {agent.name}. Conversations with it stay readable.")
    return 0
