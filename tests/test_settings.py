"""Settings: where they come from, and which are refused."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from psycopg.conninfo import conninfo_to_dict

import threadkeep
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.money import Price
from threadkeep.loopback import is_loopback
from threadkeep.settings import Settings, misnamed, open_to_others

SECRET = "s3cret-" * 8


def test_defaults_need_nothing():
    settings = Settings.load({})
    assert (settings.host, settings.port, settings.signs_in) == ("127.0.0.1", 8710, False)
    assert settings.database == "sqlite:///.threadkeep/threadkeep.db"


def test_environment_wins_over_the_file_and_arguments_over_both(tmp_path: Path):
    file = tmp_path / "threadkeep.toml"
    file.write_text('port = 1\nretention_days = 7\ncors_origins = ["https://a.example"]\n')
    settings = Settings.load({"THREADKEEP_PORT": "2", "THREADKEEP_HOST": "::1"}, file, host="127.0.0.2")
    assert (settings.port, settings.host, settings.retention_days) == (2, "127.0.0.2", 7)
    assert settings.cors_origins == ("https://a.example",)


def test_lists_are_separated_by_commas():
    settings = Settings.load({"THREADKEEP_ALLOWED_HOSTS": "a.example, b.example,"})
    assert settings.allowed_hosts == ("a.example", "b.example")


def test_agents_in_code_are_named_in_the_environment_or_in_a_table_of_the_file(tmp_path: Path):
    file = tmp_path / "threadkeep.toml"
    file.write_text('[agents]\nload = ["shop:orders", "desk:AGENTS"]\n')
    assert Settings.load({}, file).agents == ("shop:orders", "desk:AGENTS")
    assert Settings.load({"THREADKEEP_AGENTS": "a:b, c:d"}, file).agents == ("a:b", "c:d")
    file.write_text('[agents]\nlaod = ["shop:orders"]\n')
    with pytest.raises(SettingsError, match="only `load`, not `laod`"):
        Settings.load({}, file)


BLANK = ("", " ", "\t\n", "\u200b\u3000")


@pytest.mark.parametrize("name", Settings.__struct_fields__)
def test_blank_value_counts_as_missing(name: str, tmp_path: Path):
    usual, file = Settings.load({}), tmp_path / "threadkeep.toml"
    for blank in BLANK:
        assert Settings.load({f"THREADKEEP_{name.upper()}": blank}) == usual
        given: dict[str, Any] = {name: blank}
        assert Settings.load({}, **given) == usual
        file.write_text(f"{name} = {json.dumps(blank)}\n")
        # A list in a file can be empty on purpose: no program, no variable.
        of_file = getattr(Settings.load({}, file), name)
        assert of_file in (getattr(usual, name), ())


@pytest.mark.parametrize("name", ["THREADKEEP_CONFIG", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"])
def test_other_names_that_are_blank_count_as_missing(name: str):
    assert Settings.load({name: " "}) == Settings.load({})


def test_blank_issuer_or_audience_does_not_pass_for_one():
    provider = {
        "THREADKEEP_JWKS_URL": "https://id.example/keys",
        "THREADKEEP_JWT_ISSUER": "https://id.example",
    }
    for blank in BLANK:
        with pytest.raises(SettingsError, match="requires THREADKEEP_JWT_ISSUER"):
            Settings.load(provider | {"THREADKEEP_JWT_AUDIENCE": blank})


def test_rules_for_mcp_servers_are_strict_unless_the_operator_says_otherwise():
    usual = Settings.load({})
    assert usual.mcp_allowed_commands == ("npx", "uvx")
    assert (usual.mcp_stdio, usual.mcp_allow_private, usual.secret_keys) == ("admin", False, ())
    other = Settings.load(
        {
            "THREADKEEP_MCP_ALLOWED_COMMANDS": "docker, uvx",
            "THREADKEEP_MCP_STDIO": "owner",
            "THREADKEEP_MCP_ALLOW_PRIVATE": "true",
            "THREADKEEP_SECRET_KEY": f"{SECRET}1, {SECRET}2",
        }
    )
    assert other.mcp_allowed_commands == ("docker", "uvx")
    assert (other.mcp_stdio, other.mcp_allow_private) == ("owner", True)
    assert other.secret_keys == (f"{SECRET}1", f"{SECRET}2")


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"THREADKEEP_PORT": "x"}, "THREADKEEP_PORT"),
        ({"THREADKEEP_PORT": "70000"}, "THREADKEEP_PORT"),
        ({"THREADKEEP_JWT_SECRET": "short"}, "32 characters"),
        ({"THREADKEEP_JWT_SECRET": SECRET, "THREADKEEP_JWKS_URL": "https://x"}, "not both"),
        ({"THREADKEEP_JWKS_URL": "file:///etc/passwd"}, "JWKS_URL"),
        ({"THREADKEEP_JWKS_URL": "https://id.example/keys"}, "requires THREADKEEP_JWT_ISSUER"),
        (
            {"THREADKEEP_JWKS_URL": "https://id.example/keys", "THREADKEEP_JWT_ISSUER": "https://id.example"},
            "requires THREADKEEP_JWT_ISSUER and THREADKEEP_JWT_AUDIENCE",
        ),
        ({"THREADKEEP_ADMIN_CLAIM": "admin"}, "ADMIN_CLAIM"),
        ({"THREADKEEP_ADMIN_CLAIM": "role="}, "ADMIN_CLAIM"),
        ({"THREADKEEP_DATABASE_URL": "mysql://x"}, "DATABASE_URL"),
        ({"THREADKEEP_DATABASE_SCHEMA": "a; drop"}, "DATABASE_SCHEMA"),
        ({"THREADKEEP_DATABASE_PASSWORD": "x"}, "DATABASE_PASSWORD is for .* PostgreSQL"),
        (
            {"THREADKEEP_DATABASE_PASSWORD": "x", "THREADKEEP_DATABASE_URL": "postgresql://u:y@h/d"},
            "DATABASE_PASSWORD or a password in THREADKEEP_DATABASE_URL",
        ),
        ({"THREADKEEP_SECRET_KEY_FILE": "/nowhere"}, "SECRET_KEY_FILE: Couldn't read /nowhere: No such file"),
        ({"THREADKEEP_SECRET_KEY_FILE": "/dev/null"}, "SECRET_KEY_FILE: /dev/null is empty"),
        ({"THREADKEEP_SECRET_KEY_FILE": "/x", "THREADKEEP_SECRET_KEY": SECRET}, "SECRET_KEY_FILE, not both"),
        ({"THREADKEEP_CORS_ORIGINS": "*"}, "CORS_ORIGINS"),
        ({"THREADKEEP_CORS_ORIGINS": "https://["}, "CORS_ORIGINS"),
        ({"THREADKEEP_JWKS_URL": "https://[x"}, "JWKS_URL"),
        ({"THREADKEEP_GATEWAY_URL": "http://]"}, "GATEWAY_URL"),
        ({"THREADKEEP_SECRET_KEY": "short"}, "SECRET_KEY"),
        ({"THREADKEEP_SECRET_KEY": f"{SECRET},short"}, "SECRET_KEY"),
        (
            {"THREADKEEP_MCP_STDIO": "everyone"},
            "THREADKEEP_MCP_STDIO: .*'everyone'; expected one of: admin, owner",
        ),
        ({"THREADKEEP_MCP_ALLOW_PRIVATE": "perhaps"}, "THREADKEEP_MCP_ALLOW_PRIVATE: "),
        ({"THREADKEEP_MCP_ALLOWED_COMMANDS": "npx,/bin/ls"}, "MCP_ALLOWED_COMMANDS"),
        ({"THREADKEEP_MCP_ALLOWED_COMMANDS": "npx,bash"}, "MCP_ALLOWED_COMMANDS"),
        ({"THREADKEEP_TIMEZONE": "Mars/Base"}, "TIMEZONE"),
        ({"THREADKEEP_CONFIG": "/nowhere/threadkeep.toml"}, "Settings file .* not found"),
    ],
)
def test_wrong_settings_are_refused_by_name(environment: dict[str, str], told: str):
    with pytest.raises(SettingsError, match=told):
        Settings.load(environment)


@pytest.mark.parametrize("folder", [".", "data", "data/agents", "link", "link/agents", "other/../data"])
def test_folder_that_programs_may_write_is_not_ours_and_does_not_hold_it(tmp_path: Path, folder: str):
    (tmp_path / "data" / "agents").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(SettingsError, match=r"MCP_WRITABLE.*another folder"):
        Settings.load({}, data=tmp_path / "data", mcp_writable=(str(tmp_path / folder),))
    Settings.load({}, data=tmp_path / "data", mcp_writable=(str(tmp_path / "data-of-others"),))
    with pytest.raises(SettingsError, match="absolute"):
        Settings.load({}, mcp_writable=("notes",))
    with pytest.raises(SettingsError, match="absolute"):
        Settings.load({}, mcp_readable=("~/notes",))


@pytest.mark.parametrize("folder", ["data", "data/token", "link/agents", "other/../data"])
def test_folder_that_programs_may_read_is_not_ours_though_it_may_hold_it(tmp_path: Path, folder: str):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(SettingsError, match=r"MCP_READABLE.*another folder"):
        Settings.load({}, data=tmp_path / "data", mcp_readable=(str(tmp_path / folder),))
    Settings.load({}, data=tmp_path / "data", mcp_readable=(str(tmp_path),))


def test_folder_that_programs_may_write_holds_nothing_that_decides_what_we_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    work, config = tmp_path / "shared" / "work", tmp_path / "config"
    for made in (work, config, tmp_path / "elsewhere"):
        made.mkdir(parents=True)
    monkeypatch.chdir(work)
    monkeypatch.setenv("THREADKEEP_CONFIG", str(config / "threadkeep.toml"))
    code = Path(threadkeep.__file__).parent
    for folder, what in (
        (tmp_path / "shared", "the working folder"),
        (work, "the working folder"),
        (config, "the settings file"),
        (code.parent, "the code"),
        (code / "page", "code"),
        (Path(msgspec.__file__).parent, "code"),
        (Path(sys.prefix), "the code"),
    ):
        with pytest.raises(SettingsError, match=f"MCP_WRITABLE.*{what}"):
            Settings.load({}, data=tmp_path / "data", mcp_writable=(str(folder),))
    Settings.load({}, data=tmp_path / "data", mcp_writable=(str(tmp_path / "elsewhere"), str(work / "notes")))


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "told"),
    [(0o600, 0o700, None), (0o644, 0o755, None), (0o600, 0o1777, None), (0o664, 0o700, "threadkeep.toml"),
     (0o646, 0o700, "threadkeep.toml"), (0o600, 0o777, "config")],
)  # fmt: skip
def test_settings_file_that_others_can_change_is_told(
    tmp_path: Path, file_mode: int, folder_mode: int, told: str | None
):
    file = tmp_path / "config" / "threadkeep.toml"
    file.parent.mkdir()
    file.touch()
    file.chmod(file_mode)
    file.parent.chmod(folder_mode)
    reason = open_to_others(file)
    assert (reason is None) is (told is None)
    assert (told or "") in (reason or "")


@pytest.mark.parametrize("text", ["port = ", 'prot = 1\nhost = "x"', "\xff"])
def test_broken_file_is_refused(tmp_path: Path, text: str):
    file = tmp_path / "threadkeep.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError):
        Settings.load({}, file)


def test_strangers_are_not_served_without_a_sign_in():
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.com"):
        with pytest.raises(SettingsError, match="loopback"):
            Settings.load({"THREADKEEP_HOST": host}).check_safe_to_listen()
        Settings.load({"THREADKEEP_HOST": host, "THREADKEEP_JWT_SECRET": SECRET}).check_safe_to_listen()
    Settings.load({"THREADKEEP_HOST": "127.0.0.1"}).check_safe_to_listen()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]", "app.localhost"])
def test_loopback_is_recognised(host: str):
    assert is_loopback(host)
    assert not is_loopback(f"x{host}.example")


PROVIDER = {"issuer": "https://id.example", "client_id": "threadkeep", "anyone": True}


def with_provider(name: str = "work", **given: object) -> Settings:
    return Settings.load({}, public_url="https://chat.example", sign_in={name: PROVIDER | given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"anyone": False}, "must say who may sign in"),
        ({"allowed_groups": ["staff"]}, "contradicts"),
        ({"anyone": False, "allowed_domains": ["@example.com"]}, "not a domain"),
        ({"issuer": "http://id.example"}, "https://"),
        ({"issuer": "https://u:p@id.example"}, "must be an address"),
        ({"issuer": "id.example"}, "must be an address"),
        ({"scopes": ["email"]}, "openid"),
        ({"client_id": ""}, "SIGN_IN"),
        ({"claim": "x"}, "SIGN_IN"),
    ],
)
def test_provider_that_would_let_in_the_wrong_people_is_refused(given: dict[str, Any], said: str):
    with pytest.raises(SettingsError, match=said):
        with_provider(**given)


@pytest.mark.parametrize("name", ["Work", "a|b", "1a", "", "a" * 33, "a/b"])
def test_provider_needs_a_name_that_fits_into_an_address_and_an_id(name: str):
    with pytest.raises(SettingsError, match="lower-case"):
        with_provider(name)


def test_ids_of_two_issuers_never_mix():
    legacy = PROVIDER | {"legacy_ids": True}
    page: dict[str, Any] = {"public_url": "https://chat.example"}
    with pytest.raises(SettingsError, match="only one provider"):
        Settings.load({}, **page, sign_in={"a": legacy, "b": legacy})
    with pytest.raises(SettingsError, match="another issuer"):
        Settings.load({}, **page, sign_in={"a": legacy}, jwt_secret=SECRET)
    issuer: dict[str, Any] = {"jwt_secret": SECRET, "jwt_issuer": "https://id.example"}
    assert Settings.load({}, **page, sign_in={"a": legacy}, **issuer).has_sessions


def test_provider_needs_the_address_of_the_page_and_users_of_its_own():
    provider = {"work": PROVIDER}
    with pytest.raises(SettingsError, match="PUBLIC_URL"):
        Settings.load({}, sign_in=provider, host="0.0.0.0")
    with pytest.raises(SettingsError, match="USER_TABLE"):
        Settings.load(
            {},
            sign_in=provider,
            public_url="https://chat.example",
            user_table="users.id",
            database_url="postgresql://h/d",
        )


def test_secrets_are_never_shown():
    settings = Settings.load(
        {
            "THREADKEEP_JWT_SECRET": SECRET,
            "THREADKEEP_SECRET_KEY": SECRET,
            "THREADKEEP_DATABASE_URL": "postgresql://u:pa55@h/d",
        },
        public_url="https://chat.example",
        sign_in={"work": PROVIDER | {"client_secret": SECRET}},
    )
    assert SECRET not in repr(settings.sign_in)
    assert SECRET not in repr(settings)
    assert "pa55" not in repr(settings)


def test_secret_comes_from_the_file_that_its_variable_names_and_programs_do_not_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "password"
    file.write_text("pa/55 @?&\n")
    given = {
        "THREADKEEP_DATABASE_URL": "postgresql://tk@database/tk?sslmode=require",
        "THREADKEEP_DATABASE_PASSWORD_FILE": str(file),
    }
    settings = Settings.load(given)
    assert conninfo_to_dict(settings.database) == {
        "user": "tk",
        "host": "database",
        "dbname": "tk",
        "sslmode": "require",
        "password": "pa/55 @?&",
    }
    assert "pa/55" not in repr(settings)
    assert misnamed(given) == []
    monkeypatch.setenv("THREADKEEP_DATABASE_PASSWORD_FILE", str(file))
    assert file in settings.private_paths


def test_secrets_of_tables_come_from_files_too_and_programs_do_not_see_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    secret, key = tmp_path / "client-secret", tmp_path / "key"
    secret.write_text("c1ient\n")
    key.write_text("sk-1\n")
    file = tmp_path / "threadkeep.toml"
    file.write_text(
        '[sign_in.work]\nissuer = "https://id.example"\nclient_id = "tk"\nclient_secret_env = "WORK_SECRET"\n'
        'anyone = true\n[gateways.large]\nkind = "openai"\napi_key_env = "LARGE_KEY"\n'
    )
    given = {
        "THREADKEEP_CONFIG": str(file),
        "THREADKEEP_PUBLIC_URL": "https://chat.example",
        "WORK_SECRET_FILE": str(secret),
        "LARGE_KEY_FILE": str(key),
    }
    settings = Settings.load(given)
    assert settings.sign_in["work"].secret("work") == "c1ient"
    assert settings.gateways["large"].api_key == "sk-1"
    with pytest.raises(SettingsError, match="WORK_SECRET_FILE: Couldn't read"):
        Settings.load(given | {"WORK_SECRET_FILE": str(tmp_path / "missing")})
    without = {name: it for name, it in given.items() if name != "WORK_SECRET_FILE"}
    with pytest.raises(SettingsError, match="WORK_SECRET, or in a file that WORK_SECRET_FILE names"):
        Settings.load(without).sign_in["work"].secret("work")
    for name, it in given.items():
        monkeypatch.setenv(name, it)
    assert {secret, key} <= {*settings.private_paths}


def test_address_that_cannot_be_read_is_refused_without_its_password():
    with pytest.raises(SettingsError, match="DATABASE_URL") as refused:
        Settings.load({"THREADKEEP_DATABASE_URL": "postgresql://u:pa[55@h/d"})
    assert "pa[55" not in refused.value.message


def test_agents_have_absolute_folders_of_their_own_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    workspaces = Settings.load({}).workspaces
    agent_id = AgentId(new_uuid())
    assert workspaces.of(agent_id) == tmp_path / ".threadkeep" / "agents" / agent_id
    assert workspaces.of(AgentId(new_uuid())) != workspaces.of(agent_id) != workspaces.shared


def test_promptx_command_is_split_as_a_shell_would():
    settings = Settings.load({}, promptx_command="npx -y 'dpml prompt' mcp-server")
    assert settings.promptx_arguments == ("npx", "-y", "dpml prompt", "mcp-server")
    assert Settings.load({}).promptx_arguments == ()


@pytest.mark.parametrize("command", ["npx 'open"])
def test_promptx_command_that_is_none_is_refused(command: str):
    with pytest.raises(SettingsError, match="THREADKEEP_PROMPTX_COMMAND"):
        Settings.load({}, promptx_command=command)


def test_every_setting_is_documented():
    described = Settings.load({}).describe()
    assert [it.name for it in described] == list(Settings.__struct_fields__)
    assert all(it.documentation.endswith((".", "…")) for it in described)


def test_names_that_are_none_of_ours_are_found_with_the_setting_meant():
    given = {
        "THREADKEEP_DATABSE_URL": "x",
        "THREADKEEP_SERVICE_HOST": "x",
        "THREADKEEP_PORT": "1",
        "PORT": "1",
    }
    assert [(it.name, it.meant) for it in misnamed(given)] == [
        ("THREADKEEP_DATABSE_URL", "THREADKEEP_DATABASE_URL"),
        ("THREADKEEP_SERVICE_HOST", None),
    ]


def test_what_we_tell_mcp_servers_is_no_mistyped_setting():
    assert (
        misnamed(
            {"THREADKEEP_USER_ID": "alice", "THREADKEEP_KEY": "tk_x", "THREADKEEP_CONFIG": "threadkeep.toml"}
        )
        == []
    )


def test_processes_share_what_one_server_may_use():
    settings = Settings.load(
        {}, database_url="postgresql://host/db", processes=3, database_pool_size=8, mcp_max_servers=2
    )
    each = settings.of_each_process
    assert (each.database_pool_size, each.mcp_max_servers, each.data) == (3, 1, settings.data)


def test_earlier_name_of_a_setting_still_counts(tmp_path: Path):
    url, file = "postgresql://host/db", tmp_path / "threadkeep.toml"
    file.write_text(f'workers = 2\ndatabase_url = "{url}"\n')
    environment = {"THREADKEEP_WORKERS": "3"}
    assert Settings.load({}, file).processes == 2
    assert Settings.load(environment, file).processes == 3
    assert Settings.load(environment | {"THREADKEEP_PROCESSES": "4"}, file).processes == 4
    assert Settings.load(environment, file, workers=5).processes == 5
    assert misnamed(environment) == []


GATEWAYS = """
[gateways.work]
kind = "anthropic"
api_key_env = "WORK_KEY"
models = ["fast", {name = "large", context_tokens = 1000, price = {input = "3", output = 15}}]

[gateways.home]
kind = "openai"
url = "http://127.0.0.1:11434/v1"
"""


def test_gateways_of_the_file_take_their_keys_from_the_environment_and_show_none(tmp_path: Path):
    file = tmp_path / "threadkeep.toml"
    file.write_text(GATEWAYS)
    settings = Settings.load({"WORK_KEY": "sk-hidden"}, file)
    work, home = (settings.gateways[name].config(name) for name in ("work", "home"))
    assert work.api_key
    assert work.api_key.reveal() == "sk-hidden"
    assert [it.name for it in work.models] == ["fast", "large"]
    assert work.models[1].price == Price.per_million(input=3, output=15)
    assert (home.api_key, home.models, home.is_fixed) == (None, (), True)
    assert "sk-hidden" not in repr(settings)
    without_key = Settings.load({}, file)  # as most commands are called: not in the server's environment
    with pytest.raises(SettingsError, match="WORK_KEY"):
        without_key.gateways["work"].config("work")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('[gateways.default]\nkind = "openai"', "default"),
        ('[gateways."a/b"]\nkind = "openai"', "a/b"),
        ('[gateways.a]\nkind = "telepathy"', "telepathy"),
        ('[gateways.a]\nkind = "openai"\nkeys = 1', "keys"),
        (
            '[gateways.a]\nkind = "openai"\nmodels = [{name = "m", price = {input = "lots", output = 1}}]',
            "price",
        ),
    ],
)
def test_gateway_that_cannot_be_is_refused(table: str, problem: str, tmp_path: Path):
    file = tmp_path / "threadkeep.toml"
    file.write_text(table)
    with pytest.raises(SettingsError, match=problem):
        for name, it in Settings.load({}, file).gateways.items():
            it.config(name)
