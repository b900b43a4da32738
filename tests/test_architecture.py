"""The architecture's rules: what may import what, no cycles, no import inside a function except for extras.

And who may start a task or a thread, and what a regular expression must not have.

CONTRIBUTING describes the same rules in words.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import threadkeep
import threadkeep.client
from threadkeep.cli import COMMANDS

SOURCE = Path(__file__).parents[1] / "src"
FILES = sorted((SOURCE / "threadkeep").rglob("*.py"))

COMMON = {
    "aside",
    "clock",
    "fair_slots",
    "program_log",
    "loopback",
    "loops",
    "metrics",
    "tasks",
    "version",
    "choices",
}
"""Small modules for the layers that have all of the engine below them."""

LAYERS: dict[str, set[str]] = {
    "domain": set(),
    "ports": {"domain"},
    "wire": {"ports", "domain", "choices"},
    "context": {"ports", "domain"},
    "engine": {"context", "wire", "ports", "domain", "clock"},
    # From here up, rooms use the classes of `storage`: there is one database, behind its connector.
    "log": {"storage", "engine", "context", "wire", "ports", "domain"} | COMMON,
    "runtime": {"storage", "log", "engine", "context", "wire", "ports", "domain"} | COMMON,
    "jobs": {"storage", "context", "ports", "domain"} | COMMON,
    "services": {
        "storage",
        "gateways",
        "mcp",
        "jobs",
        "runtime",
        "log",
        "engine",
        "context",
        "ports",
        "domain",
    }
    | COMMON,
    # One room per direction: format, use case, and what confines it. Their rows are in `storage/imports`.
    "exports": {"storage", "log", "context", "ports", "domain"},
    "imports": {
        "exports",
        "services",
        "storage",
        "jobs",
        "runtime",
        "engine",
        "context",
        "confined",
        "ports",
        "domain",
    }
    | COMMON,
    "handling": {"imports", "services", "storage", "runtime", "wire", "ports", "domain", "sse"} | COMMON,
    "protocols": {"handling", "services", "storage", "runtime", "log", "wire", "ports", "domain", "sse"}
    | COMMON,
    "http": {
        "protocols",
        "handling",
        "services",
        "runtime",
        "context",
        "wire",
        "ports",
        "domain",
        "settings",
        "sse",
    }
    | COMMON,
    # Adapters.
    "storage": {"search", "ports", "domain", "extras", "loops", "tasks"},
    "gateways": {"networks", "ports", "domain", "sse", "tls", "weights"},
    "mcp": {"confined", "networks", "ports", "domain", "program_log", "loops", "tasks", "tls", "version"},
    "tools": {"storage", "search", "ports", "domain"},
    "retrieval": {"storage", "search", "confined", "ports", "domain", "weights"},
    "files": {"confined", "ports", "domain"},
    "schemas": {"confined", "ports", "domain", "fair_slots"},
    # What several adapters share: how a text is searched, and how a process is started, limited and ended.
    "search": {"domain"},
    "confined": {"ports", "domain"},
    "client": {"wire", "domain", "loopback", "sse", "tasks"},
    # What agents in code are written with: it runs in other programs, too.
    "agents": {"wire", "domain"},
    # Programs of ours over the same SDK, which ask other people's servers.
    "remote_agents": {"agents", "mcp", "wire", "domain", "networks", "sse"},
    # What tests run: a whole Threadkeep. Nothing else imports it.
    "testing": {"bootstrap", "agents", "client", "http", "log", "storage", "wire", "domain", "settings"},
    "settings": {"domain", "choices", "loopback"},
    "choices": set(),
    "extras": {"version"},
    "weights": set(),
    "clock": set(),
    "aside": {"domain"},
    "fair_slots": {"domain"},
    "program_log": {"domain"},
    "loops": {"domain"},
    "metrics": {"domain"},
    "version": set(),
    "tasks": set(),
    "loopback": set(),
    "networks": set(),
    "sse": set(),
    "tls": set(),
}
# These put the parts together, so they may import everything that is not for tests.
BUILDERS = {"bootstrap", "cli", "doctor", "__init__", "__main__"}
EVERYTHING = (LAYERS.keys() | BUILDERS) - {"testing"}
# What comes with an extra, or takes long to load and is needed by few, and is loaded at first use.
EXTRAS = {
    "threadkeep.mcp.sessions.launch",
    "threadkeep.protocols.mcp.response",
    "threadkeep.cli.embedded",
    "threadkeep.http.sign_in.by_token",
    "threadkeep.http.sign_in.openid.provider",
    "threadkeep.storage.database.postgres",
    "threadkeep.retrieval.minilm",
    "threadkeep.retrieval.vectors",
    "docx",
    "docx.table",
    "pypdfium2",
    "pypdfium2.raw",
    "xllamacpp",
    "jsonschema",
    "referencing",
    "markdown_it",
}
MOST_IN_A_FOLDER = 42
# These load modules of ours by name when they are asked for. The names in them count as imports.
# The agents' loader loads other people's modules.
LOADERS = {"threadkeep", "threadkeep.cli", "threadkeep.agents.loading"}


# A task that lives as long as the process is started by `Loops.start`, which restarts it when it fails. These
# start tasks and threads of another kind; each says how that ends, and who notices if it fails.
SHORT_LIVED = {
    "threadkeep.agents.others.run_other": "an agent inside a turn: the one that runs it waits for it",
    "threadkeep.loops.Loop.__init__": "the helper itself",
    "threadkeep.storage.database.sqlite.SqliteDatabase.__init__": "threads; a `Watch` counts failures",
    # A turn, and what belongs to one.
    "threadkeep.runtime.runner.Runner.begin": "the start of a turn; the request waits for it",
    "threadkeep.runtime.runner.Runner._start": "a turn; an error ends it, after a crash a node continues it",
    "threadkeep.runtime.steering.SteeringMessages.take_in": "one write; the turn waits for it",
    "threadkeep.engine.call_tasks.CallTasks.listen": "a user's decisions; the turn waits for it",
    "threadkeep.engine.code.run._Serving._start": "a part of one turn; an error ends the turn",
    "threadkeep.engine.code.check.difference": "both sides of one check, which waits for them",
    "threadkeep.services.replies.code_checks.CodeChecks.begin": "one check; an error is a line of the log",
    "threadkeep.engine.code.tool_calls.ToolCalls.open": "one list of tools; what calls them waits for it",
    "threadkeep.engine.call_tasks.CallTasks.start": "one tool call; the turn waits for it",
    "threadkeep.services.approvals.Approvals.decide": "one write; the request waits for it",
    "threadkeep.services.replies.turn_claim.TurnClaim.take": "one write; the request waits for it",
    "threadkeep.services.replies.turn_claim.TurnClaim.close": "one write; the request waits for it",
    "threadkeep.jobs.queue.Jobs._start": "one job; it is retried when its lease expires",
    "threadkeep.jobs.queue.Jobs._handled": "the same job's handler, which it waits for",
    "threadkeep.imports.runs.ImportRuns._start": "one import; an error ends it",
    "threadkeep.imports.runs.ImportRuns._run": "notes of one import, which ends them",
    "threadkeep.imports.runs.ImportRuns._room_for": "until it is one import's turn",
    # A connection; when its task fails, it closes, and the other side reconnects.
    "threadkeep.handling.stream.EventStream._send_while_read": "a stream's client",
    "threadkeep.handling.leaving.unless_client_leaves": "one response; the request waits for it",
    "threadkeep.services.completions.completion.Completion.task": "a reply; its reader's end cancels it",
    "threadkeep.http.siblings.Siblings._respond": "one response to another worker, which waits for it",
    "threadkeep.protocols.agentx.socket.Socket.run": "a socket's client",
    "threadkeep.protocols.agentx.subscriptions.Subscription.__init__": "an error ends it; its client knows",
    "threadkeep.mcp.pool.Pool._close": "the end of a connection",
    "threadkeep.mcp.pool.Pool._begin": "the start of a connection; callers wait for it",
    "threadkeep.mcp.sessions.stdio.StdioLink.open": "a program's streams; their end closes the connection",
    "threadkeep.mcp.sessions.session.ServerSession.__init__": "a connection; the next call reconnects",
    "threadkeep.mcp.sessions.session.ServerSession.call": "one call; the caller waits for it",
    "threadkeep.mcp.sessions.session.ServerSession._elicit": "one question; the call waits for it",
    "threadkeep.mcp.sessions.session.ServerSession._look_after": "one ping",
    "threadkeep.mcp.processes.process.ServerProcess.__init__": "a program's log, until the program ends",
    "threadkeep.gateways.addresses.connect_first": "one attempt to connect; the caller waits for it",
    "threadkeep.gateways.local._Reply.begin": "one reply",
    # One thing each; the caller waits for it.
    "threadkeep.tasks.taken_whole": "one write, and what undoes it if the caller has gone",
    "threadkeep.http.sign_in.key_set.KeySet.key": "one download; the next request tries again",
    "threadkeep.http.server.server._Stopping._begin": "the end of the process",
    "threadkeep.storage.database.postgres._cancelled_once.call": "one operation; its caller waits for it",
    "threadkeep.storage.opening.open_in_thread": "one file; it is closed if nobody waits for it",
    "threadkeep.confined.process.start_confined": "the start of a confined process",
    "threadkeep.confined.process.end_process": "the end of a confined process",
    "threadkeep.retrieval.embed.BundledEmbedder.embed_query": "loads the model once",
    # Agents in code: their loop, and what runs on it.
    "threadkeep.agents.local.LocalPrograms._started_loop": "a thread with a loop, which a watchdog watches",
    "threadkeep.agents.watchdog.Watchdog.__init__": "a thread; without it, nobody says who blocks the loop",
    "threadkeep.agents.threads.Threads._add": "a thread for functions, which goes when there are none",
    "threadkeep.agents.run.FunctionRun.begin": "one run of a function, which says how it ended",
    "threadkeep.agents.blocking.BlockingTurn._wait": "one call; its thread waits for it",
    "threadkeep.agents.openai_agents.servers._Connection.__init__": "a connection, which its turns end",
    "threadkeep.agents.langgraph.bridge.wait_for": "one call; its thread waits for it",
    "threadkeep.agents.langgraph.events.Events._write_in_step": "one event, which its tool waits for",
    "threadkeep.agents.langgraph.graph_run.GraphRun.record_aside": "one event, which the next save waits for",
    "threadkeep.agents.langgraph.models._look_up": "one model call, of a run that ends it",
    # Commands, the client and fakes for tests: no server.
    "threadkeep.cli.embedded.embedded": "the server of one command",
    "threadkeep.cli.serve._serve.ready": "loads the model once",
    "threadkeep.client": "runs in other programs",
    "threadkeep.testing": "runs in tests",
}
_STARTERS = {
    "create_task",
    "ensure_future",
    "TaskGroup",
    "Thread",
    "start_new_thread",
    "run_coroutine_threadsafe",
}


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


@cache  # not when tests are collected: every worker does that
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(file.read_text()) for module, file in MODULES.items()}


def layer_of(module: str) -> str:
    return [*module.split("."), "__init__"][1]


def imports(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            yield from (name.name for name in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            assert not inner.level, "imports are absolute"
            assert inner.module
            for name in inner.names:
                whole = f"{inner.module}.{name.name}"
                yield whole if whole in MODULES else inner.module


def loaded_by_name(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(name)) if "." in name and name in MODULES:
                yield name
            case _:
                pass


def imported_modules() -> Iterator[tuple[str, set[str]]]:
    for module, tree in trees().items():
        yield module, {*imports(tree), *(loaded_by_name(tree) if module in LOADERS else ())}


def test_every_module_imports_only_from_the_layers_below_it():
    broken: list[str] = []
    for module, imported_by_it in imported_modules():
        layer = layer_of(module)
        allowed = EVERYTHING if layer in BUILDERS else LAYERS[layer] | {layer}
        for imported in imported_by_it:
            package = imported.split(".")[0]
            if package == "threadkeep" and layer_of(imported) not in allowed:
                broken.append(f"{module} may not import {imported}")
            if layer == "domain" and package not in {"threadkeep", *sys.stdlib_module_names}:
                broken.append(f"{module} may use the standard library only, not {imported}")
    assert not broken, "\n".join(broken)


def test_http_knows_protocols_only_where_it_mounts_them_and_streams_turns():
    knowing = {
        module
        for module, imported_by_it in imports_of_ours().items()
        if layer_of(module) == "http" and any(layer_of(it) == "protocols" for it in imported_by_it)
    }
    streams = {"threadkeep.http.api.turns", "threadkeep.http.api.reruns"}
    assert knowing == {"threadkeep.http.app", "threadkeep.http.protocols", *streams}


def test_no_import_hides_inside_a_function():
    hidden = [
        f"{module} imports {name} in {node.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in imports(node)
        if name not in EXTRAS
    ]
    assert not hidden, "\n".join(hidden)


def test_schemas_of_strangers_are_validated_in_one_place():
    # Elsewhere it could take as long as the stranger likes.
    validators = re.compile(r"\b(jsonschema|fastjsonschema|jsonschema_rs)\b")
    using = {module for module, file in MODULES.items() if validators.search(file.read_text())}
    assert using == {"threadkeep.schemas.validation"}
    # The SDK's own way to call a tool validates the result in the event loop.
    calling = re.compile(r"\.(call_tool|validate_tool_result)\(")
    assert not {module for module, file in MODULES.items() if calling.search(file.read_text())}
    validating = re.compile(r"\bfind_problem\(")
    in_budget_or_process = {"threadkeep.schemas." + name for name in ("validation", "checker", "process")}
    assert {m for m, file in MODULES.items() if validating.search(file.read_text())} == in_budget_or_process


def test_text_is_normalized_in_one_place_which_cuts_it_first():
    normalizing = re.compile(r"unicodedata\.normalize|import normalize\b|\bis_normalized\(")
    assert {module for module, file in MODULES.items() if normalizing.search(file.read_text())} == {
        "threadkeep.domain.text"
    }


# A possessive repetition of a group, which Python 3.11 before 3.11.5 (in Debian 12 before +deb12u9) matches
# wrongly: `(?:"a")*+` takes the quote of `"b`. A possessive class as `[^"]++` is right there, so is `(?>…)`.
_POSSESSIVE_GROUP = re.compile(r"(?:\)|\A)\s*(?:[*+?]|\{\d*,?\d*\})\+")


def possessive_groups(tree: ast.AST) -> Iterator[str]:
    """The strings with one; also one that follows something else in an f-string or a sum."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if _POSSESSIVE_GROUP.search(text):
                yield text
            case ast.Constant(value=bytes(text)) if _POSSESSIVE_GROUP.search(text.decode("latin-1")):
                yield text.decode("latin-1")
            case _:
                pass


def test_no_pattern_repeats_a_group_possessively():
    found = [f"{module}: {text}" for module, tree in trees().items() for text in possessive_groups(tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        r're.compile(r"(?:a|b)*+c")',
        r're.search(rb"(a)++", text)',
        r're.compile(r"(?:a){2,3}+", re.ASCII)',
        r're.compile(f"(?:[{letters}]|b)?+")',
        r're.compile("(?:" + letters + ")*+")',
        r're.compile(f"{group}*+")',
        r're.compile(group + "++")',
        'pattern = r"""(?: a\n | b ) *+"""',
    ],
)
def test_a_possessive_group_is_found_however_it_is_written(source: str):
    assert list(possessive_groups(ast.parse(source)))


@pytest.mark.parametrize("source", [r'r"[^\"]++"', r'r"a*+"', r'r"(?>a|b)c"', r'"(a) + (b)"', r'r"\w{2}+"'])
def test_a_possessive_class_is_none(source: str):
    assert not list(possessive_groups(ast.parse(source)))


_OWN_TIME_OR_CHANCE = re.compile(
    r"\btime\.(time|monotonic|perf_counter|sleep)|\b(random|secrets|threading|concurrent)\b|urandom|uuid[14]\b"
    r"|datetime\.(now|today)|\bThread\("
)


def test_turns_take_time_and_chance_only_from_what_they_are_given():
    # `tests/proof` runs these rooms on a time of its own, in one thread, the same way for the same seed.
    rooms = {"runtime", "log", "engine", "aside", "loops", "tasks", "fair_slots"}
    used = {
        f"{module}: {ast.unparse(node)}"
        for module, tree in trees().items()
        if layer_of(module) in rooms
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
            and _OWN_TIME_OR_CHANCE.search(ast.unparse(node.func if isinstance(node, ast.Call) else node))
        )
        or (isinstance(node, ast.Attribute | ast.Name) and _OWN_TIME_OR_CHANCE.search(ast.unparse(node)))
    }
    assert not used, "\n".join(sorted(used))


def test_only_loaders_load_modules_of_ours_by_name():
    calls = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in trees().items()
        if module not in LOADERS
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
        if not _names_another_package(node)
    ]
    assert not calls, "\n".join(calls)


def _names_another_package(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=str(name))]:
            return name.split(".")[0] != "threadkeep"
        case _:
            return False


def test_every_command_is_loaded_by_name():
    named = {*loaded_by_name(trees()["threadkeep.cli"])}
    assert {command.module for command in COMMANDS} == named


def imports_of_ours() -> dict[str, set[str]]:
    """What every module imports from the package."""
    return {
        module: {name for name in names if name.split(".")[0] == "threadkeep"}
        for module, names in imported_modules()
    }


def check_no_cycle(edges: Mapping[str, set[str]]) -> None:
    done: set[str] = set()

    def visit(node: str, path: tuple[str, ...]) -> None:
        assert node not in path, " → ".join((*path, node))
        if node not in done:
            for imported in sorted(edges.get(node, ())):
                visit(imported, (*path, node))
            done.add(node)

    for node in edges:
        visit(node, ())


def rooms(depth: int) -> dict[str, set[str]]:
    """What imports what, with everything below `depth` as one room: 1 for packages, 2 for their folders.

    Folders of the same package only: between packages, the packages count.
    """
    found: dict[str, set[str]] = {}
    for module, imported_by_it in imports_of_ours().items():
        *parents, room = module.split(".")[: depth + 1]
        for imported in imported_by_it:
            *its_parents, its_room = imported.split(".")[: depth + 1]
            if its_parents == parents and its_room != room:
                found.setdefault(".".join((*parents, room)), set()).add(".".join((*parents, its_room)))
    return found


def test_modules_form_no_cycle():
    check_no_cycle(imports_of_ours())


def test_packages_form_no_cycle():
    check_no_cycle(rooms(1))


def test_folders_of_a_package_form_no_cycle():
    check_no_cycle(rooms(2))


def test_no_folder_is_crowded():
    counts = Counter(file.parent for file in FILES if file.name != "__init__.py")
    assert not {
        str(folder.relative_to(SOURCE)): count for folder, count in counts.items() if count > MOST_IN_A_FOLDER
    }


def starters(node: ast.AST, name: str) -> Iterator[str]:
    """The functions that start tasks or threads, by their whole names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from starters(child, f"{name}.{child.name}")
            continue
        if isinstance(child, ast.Call) and ast.unparse(child.func).rpartition(".")[2] in _STARTERS:
            yield name
        yield from starters(child, name)


def test_every_long_lived_task_is_started_by_the_helper_that_restarts_it():
    found = {name for module, tree in trees().items() for name in starters(tree, module)}
    packages = ("threadkeep.client", "threadkeep.testing")
    found = {next((it for it in packages if name.startswith(f"{it}.")), name) for name in found}
    assert found == SHORT_LIVED.keys()


def test_public_names_are_the_promised_ones():
    assert sorted(threadkeep.__all__) == [
        "BlockingClient", "Client", "Settings", "User", "UserId", "UserRole", "__version__", "create_app",
    ]  # fmt: skip
    assert threadkeep.client.__all__ == [
        "BlockingClient", "Client", "ClientError", "GivenFile", "MessageQueued", "NotReached", "Recorder",
        "Sending", "TurnWaiting",
    ]  # fmt: skip
