"""`threadkeep apply`: makes agents what files say, and shows the difference first.

All files are checked before anything is stored, by the server, too. The server remembers which version of an
agent was applied last: if somebody has changed the agent elsewhere since, that is a conflict, on whichever
machine the command runs. Each agent is stored as a whole, so that a run that was interrupted can be repeated.
"""

import argparse
import difflib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET

from threadkeep.cli.managing.actions import PROGRAM_NOTE, add_server, confirm
from threadkeep.cli.managing.agent_checks import checked
from threadkeep.cli.managing.agent_files import AgentFile, found_in, read_all
from threadkeep.cli.terminal import clean
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError
from threadkeep.domain.errors import (
    Conflict,
    PreconditionFailed,
    ThreadkeepError,
)
from threadkeep.domain.tool_rules import without_server
from threadkeep.wire.views import AgentChangeView, AgentView

MOST_SHOWN = 200

_FIELDS = ("description", "primaryRoleId", "systemPrompt", "model", "visibility", "engine", "settings")
_COLORS = {"+": "32", "-": "31", "~": "33", "!": "31"}

Kind = Literal["create", "change", "keep", "conflict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What becomes of one agent."""

    file: AgentFile
    agent: AgentView | None
    others: Sequence[str]
    """Whose agents of the same name stay as they are."""
    fields: Mapping[str, Any]
    """The request's: all fields of a new agent, or a merge patch."""
    changes: Sequence[AgentChangeView]
    kind: Kind
    requires_token: bool
    rules_without_server: Sequence[str]


def add_apply(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    add_server(command, _apply, names_server=True)
    command.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="a file for each agent, or a folder of *.toml"
    )
    command.add_argument("--dry-run", action="store_true", help="show the difference and change nothing")
    command.add_argument("--yes", action="store_true", help="don't ask")
    command.add_argument(
        "--overwrite", action="store_true", help="also replace what was changed elsewhere since the last time"
    )


async def _apply(client: Client, given: argparse.Namespace) -> int:
    plans, faults = await _plan(client, read_all(found_in(given.files)), overwrite=given.overwrite)
    if faults:
        _complain(faults)
        return 1
    for plan in plans:
        _show(plan)
    if any(plan.kind == "conflict" for plan in plans):
        print(
            "Nothing was applied: agents marked with ! were changed elsewhere. To keep those changes, put "
            "them into the file (`threadkeep agent show NAME --toml`); to discard them, add --overwrite.",
            file=sys.stderr,
        )
        return 1
    if any(plan.requires_token for plan in plans):
        print(f"! An agent runs a program. {PROGRAM_NOTE}")
    writing = [plan for plan in plans if plan.kind != "keep"]
    if given.dry_run:
        return 0
    if writing and not confirm(f"Apply to {_count(len(writing))}?", yes=given.yes):
        print("Nothing was applied.")
        return 1
    return await _write(client, plans)


async def _plan(
    client: Client, files: Sequence[AgentFile], *, overwrite: bool
) -> tuple[list[AgentPlan], list[str]]:
    """What to do, as the server says it; and everything that is wrong with the files."""
    agents = [it async for it in client.agents()]
    me = (await client.me()).id
    plans: list[AgentPlan] = []
    faults: list[str] = []
    for file in files:
        faults += file.faults
        if not file.text:
            continue
        same = [it for it in agents if it.name.casefold() == file.name.casefold()]
        # Also an admin, who could change others': whoever publishes an agent must not get the team's.
        named = [it for it in same if it.version is not UNSET and it.owner_id in {me, None}]
        others = sorted({it.owner_id for it in same if it.owner_id is not None} - {me})
        if len(named) > 1:
            ids = ", ".join(it.id for it in named)
            faults.append(f"{file.place(('name',))}: {len(named)} agents have this name: {ids}. Rename one.")
            continue
        plan = partial(
            _plan_agent, client, agent=named[0] if named else None, others=others, overwrite=overwrite
        )
        planned, refused = await checked(file, plan)
        plans += [planned] if planned else []
        faults += refused
    return plans, faults


async def _plan_agent(
    client: Client, file: AgentFile, *, agent: AgentView | None, others: Sequence[str], overwrite: bool
) -> AgentPlan:
    fields = file.body if agent is None else _replacing(agent, file.body)
    preview = await client.preview_agent(fields, agent_id=agent and agent.id)
    kind: Kind = "create" if agent is None else "change" if preview.changes else "keep"
    if kind == "change" and not overwrite and agent and agent.version != agent.applied_version:
        kind = "conflict"
    return AgentPlan(
        file=file,
        agent=agent,
        others=others,
        fields=fields,
        changes=preview.changes,
        kind=kind,
        requires_token=preview.requires_token and kind != "keep",
        rules_without_server=preview.rules_without_server or (),
    )


def _replacing(agent: AgentView, body: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch after which an agent is what a file says: what the file leaves out has its default."""
    now = cast("dict[str, Any]", msgspec.to_builtins(agent))
    wanted = {"name": body["name"], **{name: body.get(name) for name in _FIELDS}}
    if agent.engine.kind == "ag-ui" and isinstance(engine := body.get("engine"), dict):
        had = {name: now["engine"][name] for name in ("headers", "repeat")}
        wanted["engine"] = _nulled(had, cast("dict[str, Any]", engine))
    wanted["settings"] = _nulled(now["settings"], body.get("settings", {}))
    if agent.is_default and wanted["visibility"] is None:
        del wanted["visibility"]  # it is public whatever happens
    return wanted


def _nulled(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says in a table, and null for everything else that is there now."""
    gone = dict.fromkeys(name for name in now if name not in wanted)
    kept: dict[str, Any] = {
        name: _nulled(cast("dict[str, Any]", now.get(name)), cast("dict[str, Any]", value))
        if isinstance(value, dict) and isinstance(now.get(name), dict)
        else value
        for name, value in wanted.items()
    }
    return {**gone, **kept}


async def _write(client: Client, plans: Sequence[AgentPlan]) -> int:
    """Stores the agents one by one, each if nobody has changed it since it was shown."""
    done = 0
    for plan in plans:
        try:
            done += await _write_one(client, plan)
        except ThreadkeepError as exc:
            if exc.code in {PreconditionFailed.code, Conflict.code}:
                print(
                    f"! {plan.file.name}: somebody has just created or changed it, so it was not "
                    "overwritten. Run the command again to see the difference.",
                    file=sys.stderr,
                )
            else:
                print(f"! {plan.file.place(())}: {exc.message}", file=sys.stderr)
            print(f"Applied to {_count(done)} before that; the command can be repeated.", file=sys.stderr)
            return 1
    print(f"Applied to {_count(done)}." if done else "Nothing to change.")
    return 0


async def _write_one(client: Client, plan: AgentPlan) -> int:
    """Stores one agent; returns how many changed, as its user sees it."""
    if plan.agent is None:
        try:
            await _create(client, plan.file.body)
        except ClientError as exc:
            if exc.code != Conflict.code:
                raise
            # The same command may run elsewhere, too, and have created the same agent a moment ago.
            again, _ = await _plan(client, [plan.file], overwrite=False)
            if not again or again[0].kind != "keep":
                raise
            return await _write_one(client, again[0])
        return 1
    version = plan.agent.version
    if plan.kind == "keep" and version == plan.agent.applied_version:
        return 0
    await client.update_agent(plan.agent.id, {**plan.fields, "applied": True}, version=version)
    return int(plan.kind != "keep")


async def _create(client: Client, fields: Mapping[str, Any]) -> None:
    await client.create_agent(
        fields["name"],
        description=fields.get("description"),
        primary_role_id=fields.get("primaryRoleId"),
        system_prompt=fields.get("systemPrompt"),
        model=fields.get("model"),
        visibility=fields.get("visibility"),
        settings=fields.get("settings"),
        engine=fields.get("engine"),
        applied=True,
    )


# What the user sees


def _complain(faults: Sequence[str]) -> None:
    for fault in faults:
        print(clean(fault), file=sys.stderr)
    number = f"{len(faults)} fault" + ("s" if len(faults) > 1 else "")
    print(f"Nothing was applied: {number} in the files.", file=sys.stderr)


def _count(number: int) -> str:
    return f"{number} agent{'' if number == 1 else 's'}"


def _show(plan: AgentPlan) -> None:
    mark, what = {
        "create": ("+", "new"),
        "change": ("~", "changes"),
        "keep": ("=", "nothing to change"),
        "conflict": ("!", "changed elsewhere since it was last applied"),
    }[plan.kind]
    _print(mark, f"{mark} {plan.file.name} ({plan.file.path}): {what}")
    if plan.kind == "create" and plan.others:
        _print("!", f"    {', '.join(plan.others)} already has an agent of this name, which stays as it is")
    for change in plan.changes:
        _show_change(change)
    for rule in plan.rules_without_server:
        _print("!", f"    settings.tools: {without_server(rule)}")


def _show_change(change: AgentChangeView) -> None:
    name = ".".join(change.path)
    before, after = change.before, change.after
    if isinstance(before, str | None) and isinstance(after, str | None) and "\n" in f"{before}{after}":
        print(f"    {clean(name)}:")
        for line in difflib.ndiff((before or "").splitlines(), (after or "").splitlines()):
            if line[0] in "+-":
                _print(line[0], f"      {line}")
    else:
        _print("~", f"    {name}: {_short(before)} → {_short(after)}")


def _short(value: object) -> str:
    if value is None:
        return "(none)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _print(mark: str, line: str) -> None:
    line = clean(line)
    color = _COLORS.get(mark)
    if color and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        line = f"\x1b[{color}m{line}\x1b[0m"
    print(line)
