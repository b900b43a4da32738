"""Programs of MCP servers are shut in: they see their agent's folder, and nothing of ours."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving import Server
from threadkeep.cli.privacy import PROVIDER_KEYS
from threadkeep.confined.landlock import SINCE_PORTS, SINCE_SIGNALS, landlock_version
from threadkeep.domain.ids import AgentId, UserId, new_uuid
from threadkeep.domain.mcp import StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.domain.user import User, UserRole
from threadkeep.domain.workspace import Workspaces
from threadkeep.http.server.server import listen
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.processes import confine, sandbox
from threadkeep.mcp.processes.lines import ServerLog
from threadkeep.mcp.processes.own_ports import own_ports
from threadkeep.mcp.processes.process import ServerProcess
from threadkeep.mcp.processes.programs import ServerEnvironment, ServerKey
from threadkeep.mcp.processes.sandbox import Kind, Sandbox

SECRET = "a-secret-for-tests-that-is-long-enough"
HAS_BUBBLEWRAP = confine.has_bubblewrap()
HERE: list[tuple[Kind, ...]] = [
    *([("landlock",)] if landlock_version() else []),
    *([("bubblewrap",)] if HAS_BUBBLEWRAP else []),
    *([("bubblewrap", "landlock")] if HAS_BUBBLEWRAP and landlock_version() else []),
]
"""Each kind alone, as a machine may have it, and both."""
NONE: list[tuple[Kind, ...]] = [()]
needs_bubblewrap = pytest.mark.skipif(not HAS_BUBBLEWRAP, reason="bubblewrap isn't installed or doesn't work")

# Tries what each of the further arguments says, and tells what came of it.
PROBE = """
import json, os, resource, socket, subprocess, sys

def tried(how, path):
    try:
        if how == "read":
            return open(path).read()
        if how == "list":
            return sorted(os.listdir(path))
        if how == "write":
            return open(path, "w").write("x")
        if how == "remove":
            return os.remove(path)
        if how == "run":
            return subprocess.run(["cat", path], capture_output=True, text=True, check=True).stdout
        if how == "connect":
            return socket.socket(socket.AF_UNIX).connect(path)
        if how == "dial":
            return socket.create_connection(("127.0.0.1", int(path))).close()
        if how == "signal":
            return os.kill(int(path), 0)
    except (OSError, subprocess.CalledProcessError) as exc:
        return type(exc).__name__

kinds = resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE
limits = [resource.getrlimit(kind)[0] for kind in kinds]
tries = [it.split(":", 1) for it in sys.argv[1:]]
print(json.dumps({"limits": limits, "env": dict(os.environ), **{":".join(it): tried(*it) for it in tries}}))
"""

OTHER = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()
"""

# Looks for words, which it is given backwards, in what all processes were started with.
SPY = """
import glob, sys

for file in (*glob.glob("/proc/*/environ"), *glob.glob("/proc/*/cmdline")):
    try:
        text = open(file).read()
    except OSError:
        continue
    if any(word[::-1] in text for word in sys.argv[1:]):
        print("found in", file, file=sys.stderr)
print("looked", file=sys.stderr)
"""


Use = Callable[[tuple[Kind, ...]], None]


class Place:
    """A data folder with two agents, and something beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.agent_id, self.other_id = (AgentId(new_uuid()) for _ in range(2))
        self.workspaces = Workspaces(self.data)
        self.own, self.other = self.workspaces.of(self.agent_id), self.workspaces.of(self.other_id)
        self.beside = folder / "beside"
        for made in (self.own, self.other, self.beside):
            made.mkdir(parents=True)
        for file in (self.data / "secret.key", self.other / "note", self.own / "note", self.beside / "note"):
            file.write_text("words")

    def run(self, box: Sandbox, *tries: str, name: str = "tool", cwd: str | None = None) -> dict[str, Any]:
        """What comes of it when a program of the first agent tries these things."""
        environment = ServerEnvironment(self.workspaces, {"PATH": os.environ["PATH"]}, sandbox=box)
        server = StdioServer(sys.executable, ("-I", "-S", "-c", PROBE, *tries), cwd=cwd)
        program = environment.program(ServerKey(self.agent_id, name, None), server)
        ran = subprocess.run(
            [*program.wrapper, program.command, *program.args],
            env=dict(program.env), cwd=program.cwd, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Makes this a machine that has only these kinds of sandbox."""
    return lambda kinds: monkeypatch.setattr(sandbox, "sandbox_kinds", lambda: kinds)


def is_refused(returned: object) -> bool:
    return returned in ("PermissionError", "FileNotFoundError", "OSError", "CalledProcessError")


@pytest.mark.parametrize("kinds", HERE)
def test_program_sees_its_agents_folder_and_nothing_else_of_ours(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    hidden = [
        f"read:{place.data / 'secret.key'}", f"run:{place.data / 'secret.key'}",
        f"read:{place.other / 'note'}", f"list:{place.other}", f"write:{place.data / 'new'}",
        f"remove:{place.data / 'secret.key'}",
        f"write:{place.beside / 'note'}", f"write:{place.beside / 'new'}", f"remove:{place.beside / 'note'}",
        f"read:{place.data}/agents/../secret.key", f"read:/proc/self/root{place.data}/secret.key",
    ]  # fmt: skip
    open_to_it = [f"read:{place.own / 'note'}", f"write:{place.own / 'new'}", f"read:{place.beside / 'note'}"]
    box = Sandbox("auto", [place.data], shown=[place.folder])
    found = place.run(box, *hidden, *open_to_it, "write:/dev/null")
    assert [it for it in hidden if not is_refused(found[it])] == []
    assert [it for it in open_to_it if is_refused(found[it])] == []
    assert not (place.data / "new").exists()
    assert not (place.beside / "new").exists()
    assert (place.data / "secret.key").read_text() == (place.beside / "note").read_text() == "words"


@pytest.mark.parametrize("kinds", HERE)
def test_program_has_a_home_and_a_cache_of_its_own(place: Place, use: Use, kinds: tuple[Kind, ...]):
    use(kinds)
    env = place.run(Sandbox("auto", [place.data]))["env"]
    folders = {name: Path(env[name]) for name in ("HOME", "XDG_CACHE_HOME", "npm_config_cache", "TMPDIR")}
    assert all(folder.is_relative_to(place.own) and folder.is_dir() for folder in folders.values())
    found = place.run(Sandbox("auto", [place.data]), *(f"write:{folder}/x" for folder in folders.values()))
    assert [found[f"write:{folder}/x"] for folder in folders.values()] == [1] * 4


@pytest.mark.parametrize("kinds", HERE)
def test_operator_may_share_folders_but_never_our_own_within_them(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    box = Sandbox("auto", [place.data], [place.beside, place.data.parent, place.beside / "not there"])
    found = place.run(box, f"write:{place.beside / 'new'}", f"read:{place.data / 'secret.key'}")
    assert found[f"write:{place.beside / 'new'}"] == 1
    assert is_refused(found[f"read:{place.data / 'secret.key'}"])


@pytest.mark.parametrize("kinds", HERE)
def test_real_promptx_of_one_user_does_not_see_that_of_another(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    theirs = place.own / "promptx-users" / "bob" / "memory"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("words")
    role = place.own / ".promptx" / "role"
    role.parent.mkdir()
    role.write_text("words")
    tries = (f"read:{theirs}", f"read:{role}", f"write:{role}", f"write:{place.own}/promptx-users/alice/x")
    found = place.run(Sandbox("auto", [place.data]), *tries, name="promptx", cwd="promptx-users/alice")
    assert is_refused(found[tries[0]])
    assert found[tries[1]] == "words"
    assert is_refused(found[tries[2]])
    assert found[tries[3]] == 1


@pytest.mark.parametrize("kinds", HERE)
def test_link_that_another_program_of_the_agent_left_opens_nothing(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    (place.own / ".promptx").symlink_to(place.data)
    path = f"read:{place.data / 'secret.key'}"
    within = f"read:{place.own / '.promptx' / 'secret.key'}"
    found = place.run(Sandbox("auto", [place.data]), path, within, name="promptx", cwd="promptx-users/alice")
    assert is_refused(found[path]) and is_refused(found[within])


@pytest.mark.parametrize("kinds", [*HERE, *NONE])
def test_program_is_limited_also_where_there_is_no_sandbox(place: Place, use: Use, kinds: tuple[Kind, ...]):
    use(kinds)
    found = place.run(Sandbox("auto", [place.data]))
    assert found["limits"] == [2 * 1024**3, 4096, 0]


@pytest.mark.parametrize("kinds", HERE)
def test_program_cannot_look_into_us_or_end_us(place: Place, use: Use, kinds: tuple[Kind, ...]):
    use(kinds)
    # As the guard and the server are: processes of the same account, outside.
    with subprocess.Popen(["sleep", "60"], env={"KEY": "words"}) as outside:
        tries = [f"read:/proc/{outside.pid}/environ", f"signal:{outside.pid}"]
        found = place.run(Sandbox("auto", [place.data]), *tries)
        outside.kill()
    assert is_refused(found[tries[0]])
    assert found[tries[1]] in {"PermissionError", "ProcessLookupError"} or landlock_version() < SINCE_SIGNALS


@needs_bubblewrap  # Landlock has no rule for sockets
def test_program_does_not_reach_who_would_run_another_outside(
    place: Place, use: Use, monkeypatch: pytest.MonkeyPatch
):
    """Such as systemd for its user, or Docker: each listens at a socket that the account may use."""
    use(("bubblewrap",))
    folder = place.beside / "user"
    folder.mkdir()
    tries = [f"connect:{folder / 'bus'}", f"connect:{place.beside / 'docker.sock'}"]
    with ExitStack() as open_to_us:
        for address in (folder / "bus", place.beside / "docker.sock"):
            listener = open_to_us.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(address))
            listener.listen()
        shown = Sandbox("auto", shown=[place.beside])
        assert not any(is_refused(it) for it in (place.run(shown, *tries)[it] for it in tries))
        hidden = place.run(Sandbox("auto"), *tries)  # as all of /tmp is
        assert [hidden[it] for it in tries] == ["FileNotFoundError"] * 2
        monkeypatch.setattr(sandbox, "_OF_THE_SYSTEM", (str(folder), str(place.beside / "docker.sock")))
        found = place.run(shown, *tries)
    assert [found[it] for it in tries] == ["FileNotFoundError", "ConnectionRefusedError"]


@pytest.mark.parametrize("kinds", HERE)
def test_program_sees_no_home_folder_but_tools_and_what_the_operator_shows(
    place: Place, use: Use, kinds: tuple[Kind, ...], monkeypatch: pytest.MonkeyPatch
):
    use(kinds)
    home = place.folder / "home"
    files = [".ssh/id", "thesis", ".nvm/node", "tools/bin/x", "shown/a", "shown/threadkeep.toml", "shared/b"]
    for name in files:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("words")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{home / 'tools/bin'}:{home}")
    monkeypatch.setattr(sandbox, "PRIVATE", ())
    hidden = [place.data, home / "shown/threadkeep.toml"]
    box = Sandbox("auto", hidden, [home / "shared"], [home / "shown"])
    found = place.run(box, *(f"read:{home / name}" for name in files), f"write:{home / 'shared/new'}")
    seen = [name for name in files if found[f"read:{home / name}"] == "words"]
    assert seen == [".nvm/node", "tools/bin/x", "shown/a", "shared/b"]
    assert (home / "shared/new").exists()


@pytest.mark.parametrize("kinds", HERE)
def test_program_has_no_devices_but_harmless_ones(place: Place, use: Use, kinds: tuple[Kind, ...]):
    use(kinds)
    with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as theirs:
        theirs.write("words")
        theirs.flush()
        terminal, other = os.openpty()
        tries = [f"read:{theirs.name}", f"write:{os.ttyname(other)}", f"write:{theirs.name}"]
        open_to_it = ["write:/dev/null", "write:/dev/zero"]
        found = place.run(Sandbox("auto", [place.data]), *tries, *open_to_it)
        os.close(terminal)
        os.close(other)
        assert Path(theirs.name).read_text() == "words"
    assert is_refused(found[tries[0]])
    assert is_refused(found[tries[1]])
    assert [found[it] for it in open_to_it] == [1, 1]


@pytest.mark.skipif(landlock_version() < SINCE_PORTS, reason="this kernel's Landlock has no rules for ports")
@pytest.mark.parametrize("kinds", [it for it in HERE if "landlock" in it])
def test_program_does_not_reach_our_own_ports(place: Place, use: Use, kinds: tuple[Kind, ...]):
    use(kinds)
    with listen("127.0.0.1", 0) as ours:
        port = ours.getsockname()[1]
        assert port in own_ports()
        with subprocess.Popen(
            [sys.executable, "-c", OTHER], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        ) as other:
            assert other.stdout
            theirs = int(other.stdout.readline())
            tries = [f"dial:{port}", f"dial:{theirs}"]
            found = place.run(Sandbox("auto", [place.data], closes_ports=True), *tries)
            other.communicate()
    assert [found[it] for it in tries] == ["PermissionError", None]
    assert port not in own_ports()


@pytest.mark.parametrize("kinds", [*HERE, *NONE])
def test_argument_that_a_program_would_not_see_is_explained(
    place: Place, use: Use, kinds: tuple[Kind, ...], monkeypatch: pytest.MonkeyPatch
):
    use(kinds)
    monkeypatch.setenv("HOME", str(place.beside))
    monkeypatch.setattr(sandbox, "PRIVATE", ())
    key = ServerKey(place.agent_id, "files", None)
    for args, shown in (
        (("--root", str(place.beside / "note")), ()),
        ((f"--root={place.beside / 'note'}",), ()),
        ((str(place.beside / "not there"), "/usr", str(place.own), "relative"), (place.folder / "other",)),
        ((str(place.beside / "note"),), (place.beside,)),
    ):
        box = Sandbox("auto", [place.data], shown=shown)
        environment = ServerEnvironment(place.workspaces, {"PATH": os.environ["PATH"]}, sandbox=box)
        if kinds and not shown:
            with pytest.raises(LinkBroken, match="THREADKEEP_MCP_READABLE"):
                environment.program(key, StdioServer("tool", args))
        else:
            environment.program(key, StdioServer("tool", args))


@pytest.mark.parametrize("kinds", HERE[-1:])
def test_argument_in_a_folder_of_tools_is_one_that_a_program_sees(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    tools, code = place.folder / "project" / "node_modules" / ".bin", "project/node_modules/server/index.js"
    for folder in (tools, (place.folder / code).parent):
        folder.mkdir(parents=True)
    (place.folder / code).write_text("words")
    searched = {"PATH": os.pathsep.join((str(tools), os.environ["PATH"]))}
    box = Sandbox("auto", [place.data, place.folder])
    environment = ServerEnvironment(place.workspaces, searched, sandbox=box)
    server = StdioServer("cat", (str(place.folder / code),))
    program = environment.program(ServerKey(place.agent_id, "tool", None), server)
    ran = subprocess.run(
        [*program.wrapper, program.command, *program.args],
        env=dict(program.env), cwd=program.cwd, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == "words"


@pytest.mark.parametrize("kinds", HERE)
async def test_environment_of_a_program_decides_nothing_outside_its_sandbox(
    place: Place, use: Use, kinds: tuple[Kind, ...]
):
    use(kinds)
    for name in ("bwrap", "python3"):
        (place.own / name).write_text(f"#!/bin/sh\ntouch {place.beside}/escaped\n")
        (place.own / name).chmod(0o755)
    path = os.pathsep.join(map(str, (place.own, place.data, os.environ["PATH"])))
    chosen = {
        "PATH": path,
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": f"{place.beside}/escaped",
        "WORD": "words",
    }
    server = StdioServer(
        "sh",
        ("-c", f"echo $WORD; cat {place.data}/secret.key || echo hidden"),
        {name: Secret(value) for name, value in chosen.items()},
    )
    box = Sandbox("auto", [place.data], shown=[place.folder])
    environment = ServerEnvironment(place.workspaces, {"PATH": os.environ["PATH"]}, sandbox=box)
    program = environment.program(ServerKey(place.agent_id, "tool", None), server)
    process = await ServerProcess.start(program, ServerLog())
    lines = [line async for line in process.lines()]
    await process.close()
    assert [line for line in lines if line in {b"words", b"hidden"}] == [b"words", b"hidden"]
    assert [it.name for it in place.beside.iterdir()] == ["note"]


def test_programs_are_kept_from_what_the_system_runs_programs_with():
    assert {"/run/user", "/run/dbus", "/run/docker.sock"} <= {*sandbox._OF_THE_SYSTEM}  # pyright: ignore[reportPrivateUsage]


def test_without_a_sandbox_programs_run_unless_one_is_required(place: Place, use: Use):
    use(())
    path = f"read:{place.data / 'secret.key'}"
    assert place.run(Sandbox("auto", [place.data]), path)[path] == "words"
    with pytest.raises(LinkBroken, match="neither Landlock"):
        place.run(Sandbox("require", [place.data]))
    assert place.run(Sandbox("off", [place.data]), path)[path] == "words"


def test_program_of_a_running_server_finds_none_of_its_secrets(tmp_path: Path):
    settings = {
        "jwt_secret": SECRET, "mcp_allowed_commands": "python", "gateway": "openai",
        "gateway_api_key": "sk-of-the-operator", "mcp_sandbox": "auto", "mcp_readable": str(tmp_path),
    }  # fmt: skip
    spy = tmp_path / "spy.py"
    spy.write_text(SPY)
    with Server(tmp_path, **settings) as server:
        token = issue_token(SECRET, User(UserId("root"), UserRole.ADMIN), 600)
        signed_in = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=server.url, headers=signed_in, timeout=60) as client:
            servers = {"spy": {"command": "python", "args": [str(spy), SECRET[::-1], "rotarepo-eht-fo-ks"]}}
            made = client.post("/api/agents", json={"name": "A", "settings": {"mcpServers": servers}})
            assert made.status_code == 201, made.text
            tested = client.post(f"/api/agents/{made.json()['id']}/mcp-servers/spy/test").json()
        # Root sees everything, and yet not these: they are gone from the environment.
        environ = Path(f"/proc/{server.process.pid}/environ").read_bytes()
    assert "looked" in tested["stderr"], tested
    assert "found" not in tested["stderr"]
    assert SECRET.encode() not in environ
    assert b"sk-of-the-operator" not in environ


def test_command_that_runs_programs_lets_nobody_look_into_it():
    script = (
        "import ctypes, os\n"
        "from threadkeep.cli.privacy import keep_secrets_private\n"
        "from threadkeep.settings import Settings\n"
        "provider = {'issuer': 'https://id.example', 'client_id': 'x', 'client_secret_env': 'MINE'}\n"
        "provider['anyone'] = True\n"
        "given = {'mcp_pass_environment': ('OPENAI_API_KEY',), 'sign_in': {'a': provider}}\n"
        "keep_secrets_private(Settings.load(**given))\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), sorted(os.environ))\n"
    )
    given = dict.fromkeys((*PROVIDER_KEYS, "MINE"), "sk-1")
    given |= {"THREADKEEP_JWT_SECRET": SECRET, "THREADKEEP_PORT": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=given, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split(" ", 1)[0] == "0"
    assert "'OPENAI_API_KEY', 'THREADKEEP_PORT'" in ran.stdout  # what is handed on, and what is no secret
    assert "ANTHROPIC" not in ran.stdout
    assert "JWT_SECRET" not in ran.stdout
    assert "MINE" not in ran.stdout


def test_agents_in_code_find_the_key_of_their_provider():
    script = (
        "import os\n"
        "from threadkeep.cli.privacy import keep_secrets_private\n"
        "from threadkeep.settings import Settings\n"
        "keep_secrets_private(Settings.load(agents=('shop:orders',)))\n"
        "print(sorted(os.environ))\n"
    )
    given = {"OPENAI_API_KEY": "sk-1", "THREADKEEP_JWT_SECRET": SECRET}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=given, capture_output=True, text=True, check=True
    )
    assert "OPENAI_API_KEY" in ran.stdout
    assert "JWT_SECRET" not in ran.stdout


def test_talk_without_a_server_lets_nobody_look_into_it_either(tmp_path: Path):
    script = (
        "import asyncio, ctypes, os, sys\n"
        "from pathlib import Path\n"
        "from threadkeep.cli.embedded import embedded\n"
        "from threadkeep.settings import Settings\n"
        "async def talk():\n"
        "    async with embedded(Settings.load(data=Path(sys.argv[1]), embedding_url='off')):\n"
        "        print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), sorted(os.environ))\n"
        "asyncio.run(talk())\n"
    )
    given = {"ANTHROPIC_API_KEY": "sk-1", "THREADKEEP_PORT": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=given, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split(" ", 1)[0] == "0"
    assert "THREADKEEP_PORT" in ran.stdout and "ANTHROPIC" not in ran.stdout
