"""Every statement of the storage with its plan in both databases: `plans.sqlite.txt`, `plans.postgres.txt`.

    python -m tests.storage.statements     writes both files anew

The plans are made on empty databases: they say which indexes a statement can use. What it reads of many rows,
`test_query_plans.py`, `test_usage_plan.py` and `test_cleanup_plans.py` measure.
"""

import ast
import asyncio
import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from inspect import getsource
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, LiteralString, NamedTuple, cast, get_args

import psycopg

import threadkeep.storage
from tests.postgres import open_postgres
from threadkeep.domain.conversation import ListedStatus
from threadkeep.storage import briefings, conversations, feedback, tool_calls
from threadkeep.storage.allowances import Paced, take_of, wait_for
from threadkeep.storage.database.connector import Statement
from threadkeep.storage.store import open_database

FOLDER = Path(__file__).parent
SQLITE, POSTGRES = FOLDER / "plans.sqlite.txt", FOLDER / "plans.postgres.txt"

page = conversations._page  # pyright: ignore[reportPrivateUsage]
briefing_page = briefings._page  # pyright: ignore[reportPrivateUsage]
calls = tool_calls._tool_calls  # pyright: ignore[reportPrivateUsage]
feedback_page = feedback._page  # pyright: ignore[reportPrivateUsage]
feedback_filters = feedback._FILTERS  # pyright: ignore[reportPrivateUsage]
call_filters = tool_calls._FILTERS  # pyright: ignore[reportPrivateUsage]

# The functions that write a statement: each with all that it writes, or with why it is not planned.
BUILT: Mapping[str, Mapping[str, Statement] | str] = {
    "conversations._page": {
        f"agent={by_agent}, {status and status.value}, pinned={pinned}, after={after}": page(
            by_agent=by_agent, by_agents=False, status=status, pinned=pinned, after=after
        )
        for by_agent, status, pinned, after in product(
            (False, True), (None, *ListedStatus), (None, True, False), (False, True)
        )
    }
    # Of a key that is limited to some agents; the other filters change nothing about that.
    | {
        f"agents, after={after}": page(by_agent=False, by_agents=True, status=None, pinned=None, after=after)
        for after in (False, True)
    },
    "briefings._page": {
        f"unread={unread}, agents={by_agents}": briefing_page(unread=unread, by_agents=by_agents)
        for unread, by_agents in product((False, True), (False, True))
    },
    "allowances.take_of": {it: take_of(it) for it in get_args(Paced)},
    "allowances.wait_for": {it: wait_for(it) for it in get_args(Paced)},
    "history._search_statement": "planned as SEARCH and SEARCH_WITHIN",
    "messages._page": "planned as PAGES",
    "executions._of_runs": "each by its own name",
    "siblings._near": "planned as _OLDER, _NEWER, _OLDER_FIRSTS and _NEWER_FIRSTS",
    "retention.idle_conversations._skipping_locked": "planned as _NOTE and _DELETE",
    "purging._some": "planned as OF_CONVERSATIONS, OF_AGENTS and OF_USERS",
    # Each filter alone, and with the cursor.
    "tool_calls._tool_calls": {
        ", ".join(filters): calls(*filters)
        for name in call_filters
        for filters in dict.fromkeys([(name,), tuple(dict.fromkeys([name, "before_time"]))])
    },
    # An agent's with each filter, and a user's.
    "feedback._page": {
        ", ".join(filters): feedback_page(*filters)
        for name in feedback_filters
        for whose in (("user_id",), ("agent_id",))
        for filters in [tuple(dict.fromkeys([*whose, name]))]
    },
    "database.host_users.tie_users": "changes the schema",
    "database.migrate._statements": "the migrations",
    "documents.vector_index._create": "changes the schema",
    "documents.vector_index.PgVector.__init__": "needs an extension; documents/test_vector_index.py",
    "documents.vector_index.PgVector._nearest": "needs an extension; documents/test_vector_index.py",
    "documents.vector_index.PgVector._index": "changes the schema",
}
# Only PostgreSQL has what these ask for.
ONLY_POSTGRES = re.compile(
    r"allowances\.|documents\.vector_index\.|database\.host_users\.|turns\._(BEGIN|END)_IN_ONE$"
    r"|turn_log\._APPEND_AND_CHARGE$"
)
# They change the schema, or need the tables of an extension.
NOT_PLANNED = re.compile(r"CREATE |ALTER |LOCK |.* tk_near")


class Scan(NamedTuple):
    """A table that a statement reads from one end to the other, perhaps by an index."""

    statement: str
    table: str


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(threadkeep.storage.__path__, "threadkeep.storage."):
        yield importlib.import_module(found.name)


def statements() -> dict[str, Statement]:
    """Every statement by its name: its module and the constant that it is, or is in."""
    found: dict[str, Statement] = {}
    for module in modules():
        names = _constants(module)
        for name, value in vars(module).items():
            if name in names:
                found |= {f"{_short(module)}.{name}{where}": it for where, it in _within(value)}
    for name, built in BUILT.items():
        if not isinstance(built, str):
            found |= {f"{name}({variant})": it for variant, it in built.items()}
    return {name: found[name] for name in sorted(found)}


def builders() -> set[str]:
    """Every function that writes a statement."""
    return {f"{_short(module)}.{name}" for module in modules() for name in _builders(_tree(module).body, "")}


def _builders(body: Iterable[ast.AST], within: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _builders(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _writes_statement(node):
            yield f"{within}{node.name}"


def _writes_statement(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == Statement.__name__
        for node in ast.walk(function)
    )


def _constants(module: ModuleType) -> set[str]:
    """The names that a module gives itself, not those that it imports."""
    targets = (
        target
        for node in _tree(module).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(getsource(module) or "")


def _short(module: ModuleType) -> str:
    return module.__name__.removeprefix("threadkeep.storage.")


def _within(value: object) -> Iterator[tuple[str, Statement]]:
    if isinstance(value, Statement):
        yield "", value
    elif isinstance(value, dict):
        for key, it in cast("dict[object, object]", value).items():
            yield from ((f"[{key}]", statement) for _, statement in _within(it))


# SQLite


def sqlite_plans(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """What SQLite does for each statement, a line for each step."""
    return {
        name: _sqlite_steps(connection, statement)
        for name, statement in statements().items()
        if not ONLY_POSTGRES.match(name) and not NOT_PLANNED.match(statement.sqlite)
    }


def _sqlite_steps(connection: sqlite3.Connection, statement: Statement) -> list[str]:
    rows = connection.execute(
        f"EXPLAIN QUERY PLAN {statement.sqlite}", [None] * len(statement.sqlite_names)
    ).fetchall()
    depths: dict[int, int] = {0: -1}
    for id_, parent, *_ in rows:
        depths[id_] = depths[parent] + 1
    return ["  " * depths[id_] + str(step) for id_, _, _, step in rows]


def sqlite_scans(plans: Mapping[str, Iterable[str]]) -> set[Scan]:
    """The tables of ours that a plan reads whole."""
    known = statements()
    return {
        Scan(name, table)
        for name, steps in plans.items()
        for step in steps
        if (found := re.match(r" *SCAN (\w+)\b(?! VIRTUAL| CONSTANT)", step))
        and (table := _table_of(known[name].sqlite, found[1])).startswith("tk_")
    }


def _table_of(sql: str, name: str) -> str:
    """The table that a name stands for."""
    aliased = re.search(rf"\b(tk_\w+) AS {name}\b", sql)
    return aliased[1] if aliased else name


# PostgreSQL


def postgres_plans(connection: psycopg.Connection) -> dict[str, list[dict[str, Any]]]:
    """What PostgreSQL does for each statement, each step with its depth."""
    connection.execute("SET plan_cache_mode = force_generic_plan")
    # On an empty database, reading and joining whole tables is the cheapest.
    for way in ("seqscan", "hashjoin", "mergejoin"):
        connection.execute(f"SET enable_{way} = off")
    return {
        name: _postgres_steps(connection, statement)
        for name, statement in statements().items()
        if not NOT_PLANNED.match(statement.postgres)
    }


def _postgres_steps(connection: psycopg.Connection, statement: Statement) -> list[dict[str, Any]]:
    connection.execute(cast("LiteralString", f"PREPARE question AS {statement.postgres}"))
    values = ", ".join(["NULL"] * len(statement.postgres_names))
    question = f"EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE question{f' ({values})' if values else ''}"
    ((plans,),) = connection.execute(cast("LiteralString", question)).fetchall()
    connection.execute("DEALLOCATE question")
    return list(_steps(plans[0]["Plan"], 0))


def _steps(node: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    yield {**node, "depth": depth}
    for inner in node.get("Plans", ()):
        yield from _steps(inner, depth + 1)


def postgres_scans(plans: Mapping[str, Iterable[dict[str, Any]]]) -> set[Scan]:
    """The tables of ours that a plan reads whole since there is no index for it."""
    return {
        Scan(name, node["Relation Name"])
        for name, nodes in plans.items()
        for node in nodes
        if node["Node Type"] == "Seq Scan" and node["Relation Name"].startswith("tk_")
    }


def _postgres_line(node: dict[str, Any]) -> str:
    words = [node["Node Type"]]
    if node.get("Index Name"):
        words.append(f"using {node['Index Name']}")
    if node.get("Relation Name"):
        words.append(f"on {node['Relation Name']}")
    conditions = [node[key] for key in ("Index Cond", "Recheck Cond") if key in node]
    return "  " * node["depth"] + " ".join(words) + (f" {conditions[0]}" if conditions else "")


# The files


def sqlite_listing(plans: Mapping[str, Iterable[str]]) -> str:
    return _listing(f"SQLite {sqlite3.sqlite_version}", plans)


def postgres_listing(server: int, plans: Mapping[str, Iterable[dict[str, Any]]]) -> str:
    return _listing(
        f"PostgreSQL {server // 10_000}", {name: map(_postgres_line, it) for name, it in plans.items()}
    )


def _listing(version: str, plans: Mapping[str, Iterable[str]]) -> str:
    entries = (f"{name}\n" + "".join(f"    {step}\n" for step in steps) for name, steps in plans.items())
    return f"Plans of {version}, written by tests/storage/statements.py\n\n" + "\n".join(entries)


async def _build(url: str) -> None:
    await (await open_database(url, pool_size=1)).close()


def main() -> None:
    """Writes both files."""
    with TemporaryDirectory() as folder:
        asyncio.run(_build(f"sqlite:///{folder}/threadkeep.db"))
        with closing(sqlite3.connect(f"{folder}/threadkeep.db")) as connection:
            SQLITE.write_text(sqlite_listing(sqlite_plans(connection)), encoding="utf-8")
    server = open_postgres()
    try:
        url = server.create_database()
        asyncio.run(_build(url))
        with psycopg.connect(url) as connection:
            text = postgres_listing(connection.info.server_version, postgres_plans(connection))
        POSTGRES.write_text(text, encoding="utf-8")
    finally:
        server.close()


if __name__ == "__main__":
    main()
