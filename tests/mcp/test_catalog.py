"""The catalog: which servers an agent has, and which may be saved and run."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest

from tests.making import ALICE, make_agent
from threadkeep.domain.agent import AgentSettings
from threadkeep.domain.errors import (
    Forbidden,
    McpCommandNotAllowed,
    McpConfigInvalid,
    McpNameReserved,
    ThreadkeepError,
)
from threadkeep.domain.mcp import McpServer, RemoteServer, ServerSource, StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.domain.user import User, UserRole
from threadkeep.mcp.catalog import Catalog
from threadkeep.mcp.processes.packages import launched_args

OWNER, ADMIN = User(ALICE), User(ALICE, UserRole.ADMIN)
USUAL = Catalog(("npx", "uvx"), stdio_needs_admin=True, allow_private=False)
SEARCH = StdioServer("npx", ("@anthropic/mcp-server-web-search",), {"SEARCH_API_KEY": Secret("xxx")})
DOCS = RemoteServer("https://mcp.example.com/mcp", {"Authorization": Secret("Bearer abc")})


def refused(
    server: McpServer, *, user: User = ADMIN, name: str = "web", catalog: Catalog = USUAL
) -> ThreadkeepError:
    """How the catalog refuses a server."""
    with pytest.raises(ThreadkeepError) as refusal:
        catalog.check(user, {name: server}, {})
    return refusal.value


def secrets(**values: str) -> Mapping[str, Secret]:
    return {name: Secret(value) for name, value in values.items()}


def test_own_servers_come_first_and_then_those_of_the_owner():
    agent = make_agent(settings=AgentSettings(mcp_servers={"web-search": SEARCH, "docs": DOCS}))
    assert [(it.name, it.source, it.server) for it in USUAL.merged(agent)] == [
        ("promptx", ServerSource.SYSTEM, None),
        ("retriever", ServerSource.BUILTIN, None),
        ("web-search", ServerSource.USER, SEARCH),
        ("docs", ServerSource.USER, DOCS),
    ]


def test_good_servers_are_taken():
    servers: dict[str, McpServer] = {
        "web-search": SEARCH,
        "docs": DOCS,
        "time": StdioServer("uvx", ("mcp-server-time", "--local-timezone=Asia/Shanghai"), cwd="notes/时间"),
        "pinned": StdioServer("npx", ("-y", "@scope/a.b_c@^1.2.3-beta.1", "-c", "anything", "--package=b")),
        "tagged": StdioServer("npx", ("a-server@next", "sh")),
        "exact": StdioServer("uvx", ("mcp_server.x==1.2.3", "--from", "anywhere")),
        "about": StdioServer("uvx", ("python-docs-mcp@1.0rc1+x",)),
        "newest": StdioServer("uvx", ("pypy-stats@latest",)),
        "key": StdioServer("uvx", ("x",), secrets(TLS_KEY="-----BEGIN\nabc\n", NODE_ENV="test", EMPTY="")),
        "port": RemoteServer("HTTPS://8.8.8.8:8443/mcp?x=1"),
        "six": RemoteServer("http://[2001:4860:4860::8888]/mcp"),
    }
    USUAL.check(ADMIN, servers, {})
    assert [USUAL.problem(*it) for it in servers.items()] == [None] * len(servers)


@pytest.mark.parametrize("name", ["promptx", "PromptX", "PROMPTX", "retriever", "Retriever", "threadkeep"])
def test_names_of_our_own_servers_are_reserved_for_everyone(name: str):
    for user in (OWNER, ADMIN):
        for server in (SEARCH, DOCS):
            error = refused(server, user=user, name=name)
            assert isinstance(error, McpNameReserved)
            assert error.param == f"settings.mcpServers.{name}"


def test_program_is_saved_by_an_admin_unless_the_operator_lets_owners():
    error = refused(SEARCH, user=OWNER)
    assert isinstance(error, Forbidden)
    USUAL.check(OWNER, {"docs": DOCS}, {})
    Catalog(("npx",), stdio_needs_admin=False, allow_private=False).check(OWNER, {"web": SEARCH}, {})


def test_owner_may_keep_what_an_admin_has_saved_but_not_change_it():
    USUAL.check(OWNER, {"web": SEARCH, "docs": DOCS}, {"web": SEARCH})
    for changed in (
        StdioServer("npx", ("another",), SEARCH.env),
        StdioServer(SEARCH.command, SEARCH.args, SEARCH.env, disabled=True),
        StdioServer(SEARCH.command, SEARCH.args, secrets(SEARCH_API_KEY="yyy")),
    ):
        with pytest.raises(Forbidden):
            USUAL.check(OWNER, {"web": changed}, {"web": SEARCH})
    with pytest.raises(Forbidden):
        USUAL.check(OWNER, {"renamed": SEARCH}, {"web": SEARCH})


@pytest.mark.parametrize(
    "command",
    ["sh", "bash", "../npx", "./npx", "/usr/bin/npx", "npx;rm", "npx rm", "npx\n", " npx", "NPX", "np", "",
     "npx.cmd", "npx\x00", "ｎｐｘ", "$(npx)", "node", "python"],
)  # fmt: skip
def test_every_command_but_the_allowed_bare_names_is_refused(command: str):
    error = refused(StdioServer(command, ("x",)))
    assert isinstance(error, McpCommandNotAllowed)
    assert error.param == "settings.mcpServers.web.command"
    assert USUAL.problem("own", StdioServer(command, ("x",))) == error.message


def test_command_that_the_operator_has_forbidden_since_does_not_run():
    stricter = Catalog(("uvx",), stdio_needs_admin=True, allow_private=False)
    assert USUAL.problem("search", SEARCH) is None
    assert stricter.problem("search", SEARCH)
    nothing = Catalog((), stdio_needs_admin=True, allow_private=False)
    assert isinstance(refused(SEARCH, catalog=nothing), McpCommandNotAllowed)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"args": ("a\nb",)}, "args[0]"),
        ({"args": ("x", "a\rb")}, "args[1]"),
        ({"args": ("x", "\x1b[0m")}, "args[1]"),
        ({"args": ("x", "a\u2028b")}, "args[1]"),
        ({"args": ("x", "\ud800")}, "args[1]"),
        ({"args": ("x" * 2001,)}, "args[0]"),
        ({"args": ("x",) * 65}, "args"),
        ({"args": ("-c", "rm -rf /")}, "args[0]"),
        ({"args": ("--call=rm", "x")}, "args[0]"),
        ({"args": ("--cal", "rm", "x")}, "args[0]"),
        ({"args": ("-yc", "rm", "x")}, "args[0]"),
        ({"args": ("-y", "--script-shell=/tmp/x", "x")}, "args[1]"),
        ({"args": ("-y", "--node-options=--require=/tmp/x.js", "x")}, "args[1]"),
        ({"args": ("-p", "x")}, "args[0]"),
        ({"args": ("-y", "--")}, "args[1]"),
        ({"args": ("-y", "-y", "x")}, "args[1]"),
        ({"args": ("--yes", "x")}, "args[0]"),
        ({"args": ("-y",)}, "args"),
        ({"args": ()}, "args"),
        ({"command": "uvx", "args": ()}, "args"),
        ({"command": "uvx", "args": ("-y", "x")}, "args[0]"),
        ({"cwd": "/etc"}, "cwd"),
        ({"cwd": "../other"}, "cwd"),
        ({"cwd": "a/../../b"}, "cwd"),
        ({"cwd": ""}, "cwd"),
        ({"cwd": "~"}, "cwd"),
        ({"cwd": "C:"}, "cwd"),
        ({"cwd": "a\\..\\b"}, "cwd"),
        ({"cwd": "a\nb"}, "cwd"),
        ({"cwd": "a/" * 200}, "cwd"),
        ({"env": {f"K{n}": Secret("v") for n in range(65)}}, "env"),
        ({"env": secrets(A="1", a="2")}, "env"),
        ({"env": {"A B": Secret("v")}}, "env"),
        ({"env": {"A=B": Secret("v")}}, "env"),
        ({"env": {"": Secret("v")}}, "env"),
        ({"env": {"ＰＡＴＨ": Secret("v")}}, "env"),
        ({"env": secrets(KEY="v\x00w")}, "env.KEY"),
        ({"env": secrets(KEY="\udfff")}, "env.KEY"),
        ({"env": secrets(KEY="v" * 8001)}, "env.KEY"),
    ],
)
def test_malformed_program_is_refused_with_the_field_named(change: dict[str, Any], param: str):
    fields: dict[str, Any] = {"command": "npx", "args": ("x",)}
    error = refused(StdioServer(**fields | change))
    assert isinstance(error, McpConfigInvalid)
    assert error.param == f"settings.mcpServers.web.{param}"


@pytest.mark.parametrize(
    "args",
    [("sh", "-c", "id"), ("-y", "sh", "-c", "id"), ("bash",), ("sh@latest", "-c", "id"), ("node", "-e", "1"),
     ("NODE@20", "-e", "1"), ("npm", "exec"), ("npx", "sh"), ("tsx", "x.ts"), ("cross-env", "sh"),
     ("-p", "a", "b"), ("--package=a", "b"), ("--package", "a", "b"), ("-c", "id"), ("--call", "id"),
     ("./a",), ("../a",), ("/tmp/a",), ("~/a",), ("a/b",), ("@a",), ("@a/b/c",), ("github:a/b",), (".",),
     ("git+ssh://git@example.com/a.git",), ("https://example.com/a.tgz",), ("a@npm:b",), ("a@file:../b",),
     ("a@https://example.com/a.tgz",), ("a@",), ("a b",), ("",), ("a;id",), ("$(id)",), ("_a",), (".a",),
     ("a.tgz",), ("a@b.tgz",), ("-y", "a@1.tar.gz"), ("@a/b@c.TAR",), ("a@latest\u2010x",), ("\u2010y", "a")],
)  # fmt: skip
def test_npx_runs_one_package_and_nothing_else(args: tuple[str, ...]):
    error = refused(StdioServer("npx", args))
    assert isinstance(error, McpConfigInvalid)
    assert (error.param or "").startswith("settings.mcpServers.web.args[")
    assert USUAL.problem("own", StdioServer("npx", args)) == error.message  # also where it was saved before


@pytest.mark.parametrize(
    "args",
    [("python", "-c", "1"), ("python3", "-c", "1"), ("python3.12", "-c", "1"), ("Python@3.12",), ("pypy3",),
     ("ipython",), ("uv", "run"), ("pip", "install"), ("--from", "a", "b"), ("--from=a", "b"),
     ("--with", "a", "b"), ("-p", "3.12", "a"), ("--index-url", "https://example.com", "a"), ("./a",),
     ("/tmp/a",), ("a/b",), ("git+https://example.com/a",), ("https://example.com/a.whl",),
     ("a @ https://example.com/a.whl",), ("a@https://example.com/a.whl",), ("a-",), ("-a",),
     ("a==",), ("a>=1",), ("",), ("cpython@3.12", "-c", "1"), ("CPython",), ("graalpy@24",), ("pyodide",),
     ("python3.13t@3.13", "-c", "1"), ("python3.13+freethreaded",), ("pythonw",), ("pypy3.10-v7",),
     ("a@documents",), ("a@b.whl",), ("a@1.whl",), ("a==x",)],
)  # fmt: skip
def test_uvx_runs_one_package_and_nothing_else(args: tuple[str, ...]):
    error = refused(StdioServer("uvx", args))
    assert isinstance(error, McpConfigInvalid)
    assert (error.param or "").startswith("settings.mcpServers.web.args[")


def test_interpreter_runs_where_the_operator_allows_it_by_its_name():
    Catalog(("python",), stdio_needs_admin=True, allow_private=False).check(
        ADMIN, {"own": StdioServer("python", ("-m", "my_server"))}, {}
    )


@pytest.mark.parametrize(
    ("command", "args", "launched"),
    [
        ("npx", ("@anthropic/mcp-server-web-search",), ("-y", "@anthropic/mcp-server-web-search@latest")),
        ("npx", ("-y", "a", "sh", "-c"), ("-y", "a@latest", "sh", "-c")),
        ("npx", ("a@1.2.3", "x"), ("-y", "a@1.2.3", "x")),
        ("uvx", ("mcp-server-time", "--utc"), ("mcp-server-time@latest", "--utc")),
        ("uvx", ("a@1.2.3",), ("a@1.2.3",)),
        ("uvx", ("a==1.2.3",), ("a==1.2.3",)),
        ("python", ("-m", "a"), ("-m", "a")),
    ],
)
def test_bare_name_is_fetched_and_no_program_of_that_name_is_run(
    command: str, args: tuple[str, ...], launched: tuple[str, ...]
):
    assert launched_args(command, args) == launched


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "ld_preload", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PATH", "Path",
     "HOME", "SHELL", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "NODE_PATH",
     "npm_config_registry", "NPM_CONFIG_SCRIPT_SHELL", "UV_INDEX_URL", "PIP_INDEX_URL", "GIT_SSH_COMMAND",
     "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GLIBC_TUNABLES", "SSLKEYLOGFILE",
     "THREADKEEP_SECRET_KEY", "THREADKEEP_USER_ID"],
)  # fmt: skip
def test_variables_that_run_something_else_are_refused(name: str):
    error = refused(StdioServer("uvx", ("x",), {name: Secret("value-of-it")}))
    assert isinstance(error, McpConfigInvalid)
    assert error.param == f"settings.mcpServers.web.env.{name}"
    assert "value-of-it" not in error.message


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://example.com", "javascript:alert(1)", "//example.com", "example.com", "",
     "http://", "https:///path", "http:example.com", "ws://example.com", "unix:///run/docker.sock",
     "http://exa mple.com", "http://example.com/\nHost: x", "http://example.com\\@127.0.0.1/", "http://[::1",
     "http://example.com:99999/", "http://example.com:x/", "http://例子.com/", "http://ⓛocalhost/",
     "https://user:password@example.com/", "https://token@example.com/", "https://example.com/#x",
     "https://example.com/" + "x" * 2000],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused(url: str):
    error = refused(RemoteServer(url))
    assert isinstance(error, McpConfigInvalid)
    assert error.param == "settings.mcpServers.web.url"
    assert "password" not in error.message.replace("name or password", "")


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "app.localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001",
     "0177.0.0.1", "0.0.0.0", "0", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1",
     "224.0.0.1", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
     "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "[fec0::1]", "[ff02::1]",
     "router", "printer.local", "metadata.google.internal", "nas.lan"],
)  # fmt: skip
def test_our_own_network_is_refused_unless_the_operator_allows_it(host: str):
    server = RemoteServer(f"http://{host}/mcp")
    error = refused(server, user=OWNER)
    assert isinstance(error, McpConfigInvalid)
    assert error.param == "settings.mcpServers.web.url"
    Catalog((), stdio_needs_admin=True, allow_private=True).check(OWNER, {"web": server}, {})


@pytest.mark.parametrize("host", ["10.1.2.3", "0x0a010203", "[::ffff:10.1.2.3]", "203.0.114.7"])
def test_network_that_the_operator_denies_is_refused_always(host: str):
    denied = (ip_network("10.1.0.0/16"), ip_network("203.0.114.0/24"))
    catalog = Catalog((), stdio_needs_admin=True, allow_private=True, denied_networks=denied)
    with pytest.raises(McpConfigInvalid, match="blocked"):
        catalog.check(OWNER, {"web": RemoteServer(f"http://{host}/mcp")}, {})
    catalog.check(OWNER, {"web": RemoteServer("http://10.2.0.1/mcp")}, {})


@pytest.mark.parametrize(
    ("headers", "param"),
    [
        ({"X-Key": "a\r\nX-Admin: 1"}, "headers.X-Key"),
        ({"X-Key": "a\nb"}, "headers.X-Key"),
        ({"X-Key": ""}, "headers.X-Key"),
        ({"X-Key": " a"}, "headers.X-Key"),
        ({"X-Key": "密钥"}, "headers.X-Key"),
        ({"X-Key": "a" * 8001}, "headers.X-Key"),
        ({"X Key": "a"}, "headers"),
        ({"X-Key:": "a"}, "headers"),
        ({"X-Key\r\nA": "a"}, "headers"),
        ({"": "a"}, "headers"),
        ({"X-Key": "a", "x-key": "b"}, "headers"),
        ({f"X-{n}": "a" for n in range(65)}, "headers"),
        ({"Host": "internal"}, "headers.Host"),
        ({"content-length": "0"}, "headers.content-length"),
        ({"Transfer-Encoding": "chunked"}, "headers.Transfer-Encoding"),
        ({"Mcp-Session-Id": "x"}, "headers.Mcp-Session-Id"),
        ({"Threadkeep-User-Id": "bob"}, "headers.Threadkeep-User-Id"),
    ],
)
def test_header_that_is_none_or_not_the_owners_is_refused(headers: dict[str, str], param: str):
    given = {name: Secret(value) for name, value in headers.items()}
    error = refused(RemoteServer("https://example.com/mcp", given))
    assert isinstance(error, McpConfigInvalid)
    assert error.param == f"settings.mcpServers.web.{param}"
