"""docs/limits.md says the numbers of the source, and has every setting that is a limit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT
from threadkeep import Settings
from threadkeep.agents import model_errors, others, steps, turn
from threadkeep.agents.agent import MOST_DESCRIPTION_CHARACTERS, MOST_STEPS, MOST_TIMEOUT_S
from threadkeep.agents.state import MOST_STATE_BYTES
from threadkeep.agents.turn import MOST_FILE_BYTES
from threadkeep.bootstrap import services as begun
from threadkeep.context import attachments, prompt
from threadkeep.domain import (
    agent,
    chart,
    client_tool,
    conversation,
    feedback,
    image,
    key,
    mcp,
    memory,
    queued,
    tool_rules,
    user,
)
from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.outputs import schema
from threadkeep.domain.sharing import share
from threadkeep.domain.sign_in import identity, session
from threadkeep.engine import tools
from threadkeep.engine.code import agents, running
from threadkeep.handling import bodies, idempotency, uploads
from threadkeep.handling.paging import PageQuery
from threadkeep.http import edge
from threadkeep.http.api import briefings as sent_briefings
from threadkeep.http.api import conversations
from threadkeep.imports import threadkeep as threadkeep_exports
from threadkeep.mcp import policy
from threadkeep.ports.tools import MOST_RESULT_BYTES
from threadkeep.protocols.agentx import socket
from threadkeep.protocols.openai import added_items
from threadkeep.remote_agents import program as remote_program
from threadkeep.remote_agents import thread as remote_thread
from threadkeep.remote_agents.limits import LIMITS
from threadkeep.retrieval import extract, extraction_process, index
from threadkeep.runtime import user_events
from threadkeep.services import briefings, executions, files, gateways, outside, usage
from threadkeep.services.completions import run_replies
from threadkeep.services.replies import resumed_turns
from threadkeep.services.sign_in import attempts
from threadkeep.storage import executions as stored_runs
from threadkeep.storage import messages, repeats, siblings
from threadkeep.storage.sign_in import sessions
from threadkeep.wire import json_shape, programs

PAGE = (DOCS / "limits.md").read_text(encoding="utf-8")
ROWS = {
    what.strip(): (limit.strip(), setting.strip())
    for what, limit, setting, _ in re.findall(
        r"^\| (?!what )(.+?) \| (.+?) \|(.*?)\|(.*)\|$", PAGE, re.MULTILINE
    )
}
DEFAULTS = Settings.load({})
OF_AN_AGENT = AgentSettings()
UNITS = {"KB": 1024, "MB": 1024**2, "GB": 1024**3, "minutes": 60}
FIXED = {
    "the reason of a provider that an error names": model_errors.MOST_REASON_CHARACTERS,
    "an event of a run": LIMITS.frame_bytes,
    "a run": LIMITS.run_bytes,
    "events of a run": LIMITS.events,
    "texts and thoughts of a run": LIMITS.text_characters,
    "arguments of a call": LIMITS.argument_characters,
    "calls of a run": LIMITS.calls,
    "steps of a run that are shown": LIMITS.steps,
    "requests to the user at once": LIMITS.interrupts,
    "runs of a turn": remote_program.MOST_RUNS,
    "attempts at a run that may be repeated": remote_program.ATTEMPTS,
    "silence of the server during a run": LIMITS.silence_s,
    "the thread": LIMITS.thread_bytes,
    "messages of the thread that are sent": remote_thread.MOST_HISTORY_BYTES,
    "the state of a thread": LIMITS.state_bytes,
    "uploaded files that no message has": files.MOST_UNSENT,
    "API keys": key.MOST_KEYS,
    "life of a key with the scope `admin`": key.MOST_ADMIN_DAYS,
    "agents of one key": key.MOST_AGENTS,
    "unread briefings of one agent": briefings.MOST_UNREAD,
    "browsers signed in at once": sessions.MOST_SESSIONS,
    "instructions to every agent": user.MOST_INSTRUCTION_CHARACTERS,
    "wrong invitations from one address in a minute": attempts.MOST_ATTEMPTS,
    "links for other browsers that an invited user makes in an hour": session.MOST_OWN_LINKS,
    "sign-ins with a provider started from one address in a minute": begun.MOST_BEGUN_SIGN_INS,
    "groups kept of a user": identity.MOST_GROUPS,
    "files of a message": files.MOST_FILES_OF_A_MESSAGE,
    "a conversation's queue": queued.MOST_QUEUED,
    "versions of a message that `siblings` lists": siblings.MOST_SIBLINGS,
    "a title": conversation.MOST_TITLE_CHARACTERS,
    "`metadata` of a conversation": conversations.MOST_METADATA_BYTES,
    "a note of feedback": feedback.MOST_NOTE_CHARACTERS,
    "shares of a conversation": share.MOST_SHARES,
    "a component of the prompt": prompt.MOST_COMPONENT_CHARACTERS,
    "the whole prompt": prompt.MOST_PROMPT_CHARACTERS,
    "tools that a model gets": tools.MOST_TOOLS,
    "tools that a request brings": client_tool.MOST_CLIENT_TOOLS,
    "their descriptions and parameters together": client_tool.MOST_BYTES,
    "a tool's result": MOST_RESULT_BYTES,
    "a file from a tool": MOST_FILE_BYTES,
    "attempts to resume it after crashes": resumed_turns.MOST_ATTEMPTS,
    "a name": agent.MOST_NAME_CHARACTERS,
    "MCP servers": mcp.MOST_SERVERS,
    "rules for tools": tool_rules.MOST_RULES,
    "models to choose from, fallbacks": agent.MOST_MODELS,
    "other agents that its model can call": agent.MOST_OTHERS,
    "the schema of its replies (`output`), or the one that a request brings": schema.MOST_SCHEMA_BYTES,
    "parts of it": schema.MOST_SCHEMA_PARTS,
    "levels of it": schema.MOST_SCHEMA_DEPTH,
    "starters": agent.MOST_STARTERS,
    "characters of a starter": agent.MOST_STARTER_CHARACTERS,
    "a memory": memory.MOST_CHARACTERS,
    "agents that run in each other": agents.MOST_DEPTH,
    "a text that it gives another agent": others.MOST_ASKED_CHARACTERS,
    "steps of a turn": running.MOST_STEPS,
    "open steps at once": programs.MOST_OPEN_CLAIMS,
    "a step's result, the state": MOST_STATE_BYTES,
    "a file that it attaches": MOST_FILE_BYTES,
    "files of one upload": uploads.MOST_FILES,
    "pixels of an image": image.MOST_PIXELS,
    "pages of a document": extract.MOST_PAGES,
    "text of a file in a message": attachments.MOST_CHARACTERS,
    "a search in documents": index.MOST_QUERY_CHARACTERS,
    "body with an agent, a prompt, a briefing or a rerun": bodies.MEDIUM_BODY_BYTES,
    "any other body": bodies.SMALL_BODY_BYTES,
    "values in a body of JSON": json_shape.MOST_VALUES,
    "URL and headers": edge.MOST_HEADER_BYTES,
    "`limit` of a list": 200,
    "an `Idempotency-Key`": idempotency.MOST_KEY_CHARACTERS,
    "a page of messages": messages.MOST_PAGE_BYTES,
    "the stream of `/api/me/events`": user_events.MOST_OPEN_S,
    "provider connections made in the web app or over the API": gateways.MOST_GATEWAYS,
    "a user's id": user.MOST_USER_ID_CHARACTERS,
    "days of one usage report": usage.MOST_DAYS,
    "`data` and `actions` of a briefing": sent_briefings.MOST_EXTRA_BYTES,
    "an id that a third-party client brings": outside.MOST_ID_CHARACTERS,
    "parts of an item that a client adds": added_items.MOST_PARTS_OF_AN_ITEM,
    "the description of one of them": client_tool.MOST_DESCRIPTION_CHARACTERS,
    "its parameters": client_tool.MOST_PARAMETERS_BYTES,
    "levels of its parameters": client_tool.MOST_LEVELS,
    "rows of a chart": chart.MOST_POINTS,
    "columns of a chart": chart.MOST_SERIES,
    "a model's name": agent.MOST_MODEL_CHARACTERS,
    "arguments of an MCP server": policy.MOST_ARGS,
    "one argument, or the URL": policy.MOST_URL_CHARACTERS,
    "variables or headers of an MCP server": policy.MOST_SECRETS,
    "the value of one": policy.MOST_SECRET_CHARACTERS,
    "tags of a memory": memory.MOST_TAGS,
    "all results of a turn": running.MOST_ALL_RESULTS_BYTES,
    "its description": MOST_DESCRIPTION_CHARACTERS,
    "`timeout_s` of the agent": MOST_TIMEOUT_S,
    "`retries` of a step": steps.MOST_RETRIES,
    "a question to its user": turn.MOST_QUESTION_CHARACTERS,
    "the choices, or the type of the answer": turn.MOST_SCHEMA_BYTES,
    "the name of a scope": turn.MOST_SCOPE_CHARACTERS,
    "model calls of one `turn.run`": turn.MOST_ROUNDS,
    "model calls with `turn.openai()` at once, of a run on a node": run_replies.MOST_OUTSIDE_CALLS,
    "such calls a minute, of a turn on a node": run_replies.MOST_OUTSIDE_CALLS_A_MINUTE,
    "the JSON schema of such a call's reply": schema.MOST_SCHEMA_BYTES,
    "text of a file that the agent reads": turn.MOST_READ,
    "a line of an imported Threadkeep export": threadkeep_exports.MOST_LINE_BYTES,
    "passages of a document": extraction_process.MOST_CHUNKS,
    "requests kept with their `Idempotency-Key`": repeats.MOST_OF_A_USER,
    "levels of a body of JSON": json_shape.MOST_NESTING,
    "events of one request to `/executions`": executions.MOST_EVENTS_AT_ONCE,
    "events, tools, citations and artifacts of one run": stored_runs.MOST_PARTS,
    "text of one run": stored_runs.MOST_BYTES,
    "sessions of others that a connection to `/ws` follows": socket.MOST_SUBSCRIPTIONS,
}
OF_AGENTS = {
    "maxMessageChars": OF_AN_AGENT.max_message_chars,
    "maxIterations": OF_AN_AGENT.max_iterations,
    "generationTimeoutS": OF_AN_AGENT.generation_timeout_s,
    "approvalTimeoutS": OF_AN_AGENT.approval_timeout_s / 86400,
    "contextMessages": OF_AN_AGENT.context_messages,
    "toolResultTokens": OF_AN_AGENT.tool_result_tokens,
    "retrievalTopK": OF_AN_AGENT.retrieval_top_k,
}


NO_LIMITS = {
    "what is only shown in part": (
        "MOST_HOST_CHARACTERS",
        "MOST_PREVIEW",
        "MOST_SHOWN",
        "MOST_SHOWN_CHARACTERS",
    ),
    "what is cut without a loss": (
        *("MOST_ARGUMENTS_CHARACTERS", "MOST_COLUMN_NAME", "MOST_EXCERPT_CHARACTERS", "MOST_FILE_NAME"),
        *("MOST_MESSAGE_CHARACTERS", "MOST_TOOL_NAME", "MOST_WORD_CHARACTERS"),
    ),
    "what only programs meet, in answers of others": ("MOST_KEY_SET_BYTES", "MOST_REFERENCE_CHARACTERS"),
    "names and ids in exports": ("MOST_STEP_NAME_CHARACTERS", "MOST_STEP_TITLE_CHARACTERS"),
    "how many a search or a list returns": (
        "MOST_FOUND",
        "MOST_KEPT",
        "MOST_RECALLED",
        "MOST_UNREADABLE_LINES",
    ),
    "bounds of the storage": ("MOST_COUNTED", "MOST_MEMORIES", "MOST_MESSAGES", "MOST_SILENCE_S"),
    "another name of a limit in the table": ("MOST_VALUE_BYTES",),
}
"""Constants that texts name although nobody is refused for them."""


def named_in_texts(source: str) -> Iterator[str]:
    """The constants that texts of a module name, such as `f"at most {MOST_FILES} files"`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue):
            for it in ast.walk(node.value):
                name = it.id if isinstance(it, ast.Name) else it.attr if isinstance(it, ast.Attribute) else ""
                if name.startswith("MOST_"):
                    yield name


def number(text: str) -> float | None:
    """The first number of a limit, in bytes or seconds if it has such a unit."""
    found = re.match(r"([\d,]+)(?: (\w+))?", text)
    return int(found[1].replace(",", "")) * UNITS.get(found[2], 1) if found else None


@pytest.mark.parametrize("what", ROWS)
def test_limit_is_the_one_of_the_source(what: str):
    limit, setting = ROWS[what]
    found = number(limit)
    names = re.findall(r"`([^`]+)`", setting)
    if what in FIXED:
        assert found == FIXED[what]
    elif own := [it for it in names if it in OF_AGENTS]:
        assert found == OF_AGENTS[own[0]]
    elif found is None:
        assert limit in {"none", "the model's"}
    else:
        assert found == getattr(DEFAULTS, names[0].lower())


def test_page_has_every_setting_that_limits_something():
    told = {name for _, setting in ROWS.values() for name in re.findall(r"`([A-Z_]+)`", setting)}
    words = ("MAX_", "USER_", "_TTL_", "_TIMEOUT_", "MOST_")
    values: dict[str, Any] = {name.upper(): getattr(DEFAULTS, name) for name in Settings.__struct_fields__}
    limits = {it for it in values if any(word in it for word in words)}
    assert limits - told - {"USER_TABLE"} == set()
    assert told <= values.keys()


def test_page_has_every_limit_that_a_message_names():
    folder = ROOT / "src" / "threadkeep"
    for_developers = {folder / name for name in ("cli", "client", "doctor", "testing")}
    named = {
        name
        for path in folder.rglob("*.py")
        if not for_developers & {*path.parents}
        for name in named_in_texts(path.read_text(encoding="utf-8"))
    }
    in_table = set(re.findall(r"\bMOST_\w+", Path(__file__).read_text(encoding="utf-8")))
    assert named - in_table == set(), "add a row to docs/limits.md and to FIXED"


def test_lists_and_agents_in_code_have_the_defaults_of_the_source():
    assert f"200; {PageQuery().limit} by default" in PAGE
    assert f"up to {MOST_STEPS:,}" in PAGE
    assert f"at most {DEFAULTS.max_iterations}" in PAGE
