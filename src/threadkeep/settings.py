"""All settings in one place; the only reader of the environment."""

import difflib
import os
import re
import shlex
import stat
import sys
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from msgspec import Meta

from threadkeep.choices import with_choices
from threadkeep.domain.data_folder import DATABASE, PAYLOADS
from threadkeep.domain.errors import SettingsError
from threadkeep.domain.text import is_blank
from threadkeep.domain.user import AdminClaim
from threadkeep.domain.workspace import Workspaces
from threadkeep.loopback import is_loopback

PREFIX = "THREADKEEP_"
FILE_NAME = "threadkeep.toml"

Secret = Annotated[str | None, Meta(extra={"secret": True})]


# Not settings: names that we set for MCP servers, one of which may be a Threadkeep.
_GIVEN_TO_PROGRAMS = {"USER_ID"}
_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish", "cmd", "cmd.exe", "powershell", "pwsh"}


_PACKAGES = {"site-packages", "dist-packages"}

_LISTS = (
    "allowed_hosts",
    "allowed_models",
    "cors_origins",
    "denied_networks",
    "mcp_allowed_commands",
    "mcp_pass_environment",
    "mcp_readable",
    "mcp_writable",
)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Threadkeep's settings. Each field is an environment variable in lower case without its prefix."""

    host: Annotated[str, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 picks a free one.")] = 8710
    data: Annotated[
        Path, Meta(description="Folder for all data; nodes on one PostgreSQL database share it.")
    ] = Path(".threadkeep")
    database_url: Annotated[
        Secret,
        Meta(description="sqlite:///path or postgresql://…; by default, a SQLite file in the data folder."),
    ] = None
    database_schema: Annotated[
        Annotated[str, Meta(pattern="^[a-z_][a-z0-9_]{0,62}$")] | None,
        Meta(description="PostgreSQL: keep Threadkeep's tables in this schema."),
    ] = None
    user_table: Annotated[
        Annotated[str, Meta(pattern=r"^([A-Za-z_]\w*\.){1,2}[A-Za-z_]\w*$")] | None,
        Meta(
            description="PostgreSQL, inside a host application: the column with the application's user ids, "
            "such as users.id. Deleting a user there also deletes their data here."
        ),
    ] = None
    database_pool_size: Annotated[
        int, Meta(ge=1, le=200, description="PostgreSQL: maximum number of connections.")
    ] = 8
    gateway: Annotated[
        Literal["anthropic", "openai", "local"],
        Meta(
            description="Model gateway: anthropic (Messages API), openai (chat completions, any compatible "
            "server) or local (the small demonstration model in this process)."
        ),
    ] = "local"
    gateway_url: Annotated[
        str | None, Meta(description="The gateway's URL; by default, the provider's own.")
    ] = None
    gateway_api_key: Annotated[
        Secret, Meta(description="The gateway's key; by default, ANTHROPIC_API_KEY or OPENAI_API_KEY.")
    ] = None
    model: Annotated[
        str | None,
        Meta(description="Model for agents that don't name one; for `local`, the path of a GGUF file."),
    ] = None
    model_images: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to send images to models. `auto` sends them to model families known to "
            "accept them."
        ),
    ] = "auto"
    model_pdfs: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to send PDFs to models as files instead of text. `auto` does so for Claude "
            "and OpenAI's own models."
        ),
    ] = "auto"
    guide: Annotated[
        Literal["auto", "on", "off"],
        Meta(
            description="Whether to offer the Guide, an agent that demonstrates every feature without a "
            "model. `auto` offers it when the demonstration model is in use."
        ),
    ] = "auto"
    payload_store: Annotated[
        Literal["folder", "database"] | None,
        Meta(
            description="Where to store large values and files from tools: folder (in the data folder; the "
            "default with SQLite) or database (the default with PostgreSQL)."
        ),
    ] = None
    turn_log_ttl_hours: Annotated[
        int, Meta(ge=0, description="Hours during which clients can replay a finished turn's events.")
    ] = 24
    resume_within_hours: Annotated[
        float,
        Meta(
            ge=0,
            description="Hours after which Threadkeep ends an abandoned turn instead of resuming it.",
        ),
    ] = 24
    jwt_secret: Annotated[
        Secret, Meta(description="Sign-in with HS256 tokens: the shared secret, at least 32 characters.")
    ] = None
    jwks_url: Annotated[
        str | None, Meta(description="Sign-in with RS256/ES256 tokens: the URL of the provider's keys.")
    ] = None
    jwt_issuer: Annotated[
        str | None, Meta(description="The required `iss` of a token; mandatory with JWKS_URL.")
    ] = None
    jwt_audience: Annotated[
        str | None, Meta(description="The required `aud` of a token; mandatory with JWKS_URL.")
    ] = None
    admin_claim: Annotated[
        str,
        Meta(
            description="The token claim and value that make a user an admin, such as role=admin or "
            "realm_access.roles=threadkeep-admin. With `off`, no token does."
        ),
    ] = "role=admin"
    require_token: Annotated[
        bool,
        Meta(
            description="If sign-in is off, require the data folder's token, which `threadkeep open` sends; "
            "same as --require-token."
        ),
    ] = False
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(description="Host names the server accepts besides loopback; comma-separated."),
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...],
        Meta(
            description="Web origins allowed to call the server from a browser, besides its own; "
            "comma-separated."
        ),
    ] = ()
    mcp_allowed_commands: Annotated[
        tuple[str, ...],
        Meta(description="Programs allowed as agents' MCP servers, each a bare name; comma-separated."),
    ] = ("npx", "uvx")
    mcp_stdio: Annotated[
        Literal["admin", "owner"],
        Meta(description="Who can add MCP servers that run a program on this machine: admin, or any owner."),
    ] = "admin"
    mcp_sandbox: Annotated[
        Literal["auto", "require", "off"],
        Meta(
            description="Sandbox MCP servers that run a program, so that they see only their agent's folder "
            "of the data: auto (if this machine supports it), require (otherwise they don't run) or off."
        ),
    ] = "auto"
    mcp_writable: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders besides their agent's that MCP servers running a program can write to, as "
            "absolute paths; comma-separated."
        ),
    ] = ()
    mcp_readable: Annotated[
        tuple[str, ...],
        Meta(
            description="Folders in the home folder or in /tmp that MCP servers running a program can read, "
            "as absolute paths; comma-separated. Otherwise, they see only tools there, such as ~/.nvm."
        ),
    ] = ()
    mcp_allow_private: Annotated[
        bool, Meta(description="Allow agents' MCP servers on loopback and private addresses.")
    ] = False
    denied_networks: Annotated[
        tuple[str, ...],
        Meta(
            description="Networks blocked for agents' MCP servers, besides private ones, such as "
            "203.0.113.0/24; comma-separated. They stay blocked with MCP_ALLOW_PRIVATE."
        ),
    ] = ()
    mcp_pass_environment: Annotated[
        tuple[str, ...],
        Meta(
            description="Environment variables to pass to MCP servers, such as HTTPS_PROXY; "
            "comma-separated. MCP servers see no others."
        ),
    ] = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "TZ")
    mcp_max_servers: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Maximum number of running MCP servers; a new one replaces the one idle the longest.",
        ),
    ] = 32
    mcp_connect_budget_s: Annotated[
        float, Meta(gt=0, le=60, description="Seconds a turn waits for its MCP servers to start.")
    ] = 10
    mcp_idle_s: Annotated[
        float, Meta(ge=1, description="Idle seconds after which an MCP server is stopped.")
    ] = 600
    promptx_command: Annotated[
        str | None,
        Meta(
            description="Command of a PromptX to run instead of the built-in one, such as `npx -y "
            "dpml-prompt mcp-server`. Each user of each agent gets a separate process."
        ),
    ] = None
    secret_key: Annotated[
        Secret,
        Meta(
            description="Key for encrypting the secrets of agents' MCP servers, at least 32 characters; with "
            "SQLite, generated in the data folder. To rotate it, list several, comma-separated: the "
            "first encrypts, all decrypt."
        ),
    ] = None
    allowed_models: Annotated[
        tuple[str, ...],
        Meta(description="Models agents can use besides THREADKEEP_MODEL; comma-separated. Empty: any."),
    ] = ()
    max_reply_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum output tokens per model call, whatever an agent's `maxTokens`; 0: no limit "
            "beyond the agent's or the model's.",
        ),
    ] = 0
    max_iterations: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum model calls per turn, whatever an agent's `maxIterations`; 0: no limit.",
        ),
    ] = 100
    max_message_chars: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum characters per message, whatever `maxMessageChars` is; 0: no limit.",
        ),
    ] = 0
    user_running_turns: Annotated[
        int,
        Meta(ge=0, description="Maximum turns one user can run at once, across all nodes; 0: no limit."),
    ] = 100
    user_turns_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum turns one user can start per minute, across all nodes; compactions count; "
            "0: no limit.",
        ),
    ] = 60
    user_uploads_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Maximum files for messages one user can upload per minute, across all nodes; "
            "0: no limit.",
        ),
    ] = 120
    file_workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Maximum images, PDFs and Word documents of messages that a node prepares at once; "
            "users take turns. Each may take 1.3 GB of memory.",
        ),
    ] = 2
    user_documents: Annotated[
        int,
        Meta(ge=0, description="Maximum number of documents across all agents of one owner; 0: no limit."),
    ] = 10_000
    user_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum bytes of one user: files of messages, sent or not, equal ones counted once, "
            "and the documents of the user's agents; 0: no limit.",
        ),
    ] = 10 * 1024**3
    publish: Annotated[
        Literal["owner", "admin"],
        Meta(description="Who can make an agent public: owner (each owner their own agents), or admin."),
    ] = "owner"
    shutdown_grace_s: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="Seconds running turns get to finish when the server stops; a second signal stops it "
            "immediately.",
        ),
    ] = 10
    max_connections: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum number of open connections; beyond it, the connection idle the longest is "
            "closed. The system's limit on open files lowers it.",
        ),
    ] = 10_000
    max_idle_sockets: Annotated[
        int,
        Meta(
            ge=1,
            description="Maximum /ws connections without a session; beyond it, the oldest is closed.",
        ),
    ] = 500
    header_timeout_s: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds for a request's headers to arrive.")
    ] = 10
    body_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds for a request's body to arrive, plus one for each 8 KB received.",
        ),
    ] = 20
    keep_alive_s: Annotated[
        int, Meta(ge=1, le=3600, description="Seconds an idle connection waits for its next request.")
    ] = 30
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            description="Maximum body size for messages and executions; a larger body gets a 413. Other "
            "routes accept 64 KB; those for agents, prompts and briefings, 256 KB.",
        ),
    ] = 10 * 1024 * 1024
    max_upload_bytes: Annotated[
        int, Meta(ge=1024, description="Maximum size of a document upload, all files of a request together.")
    ] = 100 * 1024 * 1024
    file_ttl_hours: Annotated[
        int, Meta(ge=1, description="Hours an uploaded file waits for its message before it is deleted.")
    ] = 24
    max_unsent_file_bytes: Annotated[
        int,
        Meta(ge=1024, description="Maximum total size of a user's uploaded files that no message uses yet."),
    ] = 500 * 1024 * 1024
    embedding_url: Annotated[
        str | None,
        Meta(
            description="URL of an OpenAI-compatible server (…/v1) for semantic search of documents, "
            "instead of the bundled model; `off` turns semantic search off."
        ),
    ] = None
    embedding_api_key: Annotated[Secret, Meta(description="The embedding server's key.")] = None
    embedding_model: Annotated[str, Meta(description="The embedding server's model.")] = (
        "text-embedding-3-small"
    )
    retention_days: Annotated[
        int, Meta(ge=0, description="Days until a deleted conversation is purged for good.")
    ] = 30
    timezone: Annotated[
        str, Meta(description="Time zone for times shown to the model, such as Asia/Shanghai.")
    ] = "UTC"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Minimum level of log lines: debug, info, warning or error."),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        Meta(description="Log format: text for people, or json with one object per line for programs."),
    ] = "text"

    @staticmethod
    def load(
        environment: Mapping[str, str] = os.environ, file: Path | None = None, **overrides: object
    ) -> "Settings":
        """Reads `threadkeep.toml`, then the environment, then the arguments; later ones take precedence.

        A blank value counts as missing, wherever it is.
        """
        given: dict[str, object] = {}
        file = file or settings_file(environment)
        in_file = _read_file(file, required=_value(environment, f"{PREFIX}CONFIG") is not None)
        given |= {name: it for name, it in in_file.items() if name in _LISTS or not _is_missing(it)}
        for name in Settings.__struct_fields__:
            if (value := _value(environment, PREFIX + name.upper())) is not None:
                given[name] = value
        given |= {name: value for name, value in overrides.items() if not _is_missing(value)}
        _choose_gateway(given, environment)
        for name in _LISTS:
            if isinstance(text := given.get(name), str):
                given[name] = _list(text)
        try:
            settings = msgspec.convert(given, Settings, strict=False, dec_hook=_to_path)
        except msgspec.ValidationError as exc:
            message, _, place = str(exc).partition(" - at `$.")
            name = f"{PREFIX}{place.rstrip('`').upper()}: " if place else "Settings: "
            raise SettingsError(f"{name}{with_choices(message, Settings, place)}.") from exc
        settings.check()
        return settings

    def check(self) -> None:
        """Rejects combinations that can't work or would be unsafe."""
        self.check_sign_in()
        if self.gateway_url:
            _split(self.gateway_url, "GATEWAY_URL")
        if self.embedding_url not in {None, "off"} and (
            _split(self.embedding_url or "", "EMBEDDING_URL").scheme not in {"http", "https"}
        ):
            raise SettingsError("THREADKEEP_EMBEDDING_URL must be an http(s) URL or `off`.")
        if _split(self.database, "DATABASE_URL").scheme not in {"sqlite", "postgresql", "postgres"}:
            raise SettingsError("THREADKEEP_DATABASE_URL must start with sqlite:/// or postgresql://.")
        if self.user_table and self.on_sqlite:
            raise SettingsError(
                "THREADKEEP_USER_TABLE requires PostgreSQL. With SQLite, call `await app.delete_user(id)` "
                "when the application deletes a user."
            )
        if self.timezone != "UTC" and self.timezone not in available_timezones():
            raise SettingsError(f"THREADKEEP_TIMEZONE: unknown time zone {self.timezone!r}.")
        for command in self.mcp_allowed_commands:
            if not _COMMAND.fullmatch(command) or command.lower() in _SHELLS:
                raise SettingsError(
                    f"THREADKEEP_MCP_ALLOWED_COMMANDS: {command!r} is a shell or not a bare name."
                )
        _ = self.networks_denied
        for folder in self.mcp_writable:
            self._check_writable(Path(folder))
        for folder in self.mcp_readable:
            self._check_readable(Path(folder))
        if self.promptx_command is not None and not self.promptx_arguments:
            raise SettingsError("THREADKEEP_PROMPTX_COMMAND must name a program.")
        if any(len(key) < 32 for key in self.secret_keys):
            raise SettingsError("THREADKEEP_SECRET_KEY needs at least 32 characters for each key.")
        for origin in self.cors_origins:
            parts = _split(origin, "CORS_ORIGINS")
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise SettingsError(
                    f"THREADKEEP_CORS_ORIGINS: {origin!r} is not an origin such as https://app.example."
                )

    def _check_readable(self, folder: Path) -> None:
        if not folder.is_absolute():
            raise SettingsError(f"THREADKEEP_MCP_READABLE: '{folder}' is not an absolute path.")
        theirs = folder.resolve()
        # Around them it may be: they stay hidden in it.
        if any(theirs.is_relative_to(ours.resolve()) for ours in self.private_paths):
            raise SettingsError(
                f"THREADKEEP_MCP_READABLE: '{folder}' belongs to Threadkeep's own data or settings, which "
                "programs can't access. Choose another folder."
            )

    def _check_writable(self, folder: Path) -> None:
        if not folder.is_absolute():
            raise SettingsError(f"THREADKEEP_MCP_WRITABLE: '{folder}' is not an absolute path.")
        ours, theirs = self.data.resolve(), folder.resolve()
        if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
            raise SettingsError(
                f"THREADKEEP_MCP_WRITABLE: '{folder}' overlaps the data folder {self.data}, which programs "
                "can't access. Choose another folder."
            )
        for what, path in self._trusted_places():
            if path.is_relative_to(theirs):
                raise SettingsError(
                    f"THREADKEEP_MCP_WRITABLE: '{folder}' contains {what} {path}: a program could change "
                    "what Threadkeep runs or how it is set up. Choose another folder."
                )
        code = Path(__file__).resolve().parent
        if theirs.is_relative_to(code) or any(it in _PACKAGES for it in theirs.parts):
            raise SettingsError(
                f"THREADKEEP_MCP_WRITABLE: '{folder}' is in a folder of code. Choose another."
            )

    def _trusted_places(self) -> Iterator[tuple[str, Path]]:
        """What decides what we run."""
        yield "the working folder", Path.cwd().resolve()
        yield "the settings file", settings_file().absolute().resolve()
        for folder in (str(Path(__file__).parent), sys.prefix, sys.base_prefix, *sys.path):
            if Path(folder).is_absolute():
                yield "the code in", Path(folder).resolve()

    def check_sign_in(self) -> None:
        """Rejects sign-in settings that would let in the wrong people."""
        if self.jwt_secret and self.jwks_url:
            raise SettingsError("Set either THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL, not both.")
        if self.jwt_secret and len(self.jwt_secret) < 32:
            raise SettingsError("THREADKEEP_JWT_SECRET needs at least 32 characters.")
        if self.jwks_url and _split(self.jwks_url, "JWKS_URL").scheme not in {"http", "https"}:
            raise SettingsError("THREADKEEP_JWKS_URL must be an http(s) URL.")
        if self.jwks_url and not (self.jwt_issuer and self.jwt_audience):
            raise SettingsError(
                "THREADKEEP_JWKS_URL requires THREADKEEP_JWT_ISSUER and THREADKEEP_JWT_AUDIENCE: a "
                "provider signs the tokens of all its applications with the same keys, and Threadkeep must "
                "accept only its own."
            )
        if self.admin is None and self.admin_claim != "off":
            raise SettingsError(
                f"THREADKEEP_ADMIN_CLAIM: {self.admin_claim!r} is neither a claim such as role=admin "
                "nor `off`."
            )

    def check_safe_to_listen(self) -> None:
        """Refuses to listen beyond loopback without sign-in."""
        if not self.signs_in and not is_loopback(self.host):
            raise SettingsError(
                f"Without sign-in, Threadkeep listens only on loopback, not on {self.host}. Set "
                "THREADKEEP_JWT_SECRET or THREADKEEP_JWKS_URL first."
            )

    @property
    def signs_in(self) -> bool:
        """Whether users sign in; without sign-in, everyone with access is the user `local`."""
        return bool(self.jwt_secret or self.jwks_url)

    @property
    def admin(self) -> AdminClaim | None:
        """The claim that makes a token an admin's; None if none does."""
        return AdminClaim.read(self.admin_claim)

    @property
    def networks_denied(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of `denied_networks`."""
        try:
            return tuple(ip_network(name) for name in self.denied_networks)
        except ValueError as exc:
            raise SettingsError(f"THREADKEEP_DENIED_NETWORKS: {exc}.") from exc

    @property
    def mcp_environment(self) -> dict[str, str]:
        """The variables of our own environment that MCP servers get."""
        return {name: os.environ[name] for name in self.mcp_pass_environment if name in os.environ}

    @property
    def private_paths(self) -> tuple[Path, ...]:
        """What programs that we run for users may not see: our data, and files with our secrets."""
        files = (settings_file(), Path(".env"))
        database = Path(self.database.removeprefix("sqlite:///")) if self.on_sqlite else self.data
        beside = (database.with_name(f"{database.name}{end}") for end in ("", "-wal", "-shm"))
        return tuple(it.absolute() for it in (self.data, *files, *beside))

    @property
    def promptx_arguments(self) -> tuple[str, ...]:
        """The parts of `promptx_command`, quoted as in a shell; no shell is run."""
        try:
            return tuple(shlex.split(self.promptx_command or ""))
        except ValueError as exc:
            raise SettingsError(f"THREADKEEP_PROMPTX_COMMAND: {exc}.") from exc

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The keys of `secret_key`; the first encrypts."""
        return _list(self.secret_key or "")

    @property
    def zone(self) -> tzinfo:
        """The time zone of `timezone`."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)

    @property
    def database(self) -> str:
        """The database's URL, with the default filled in."""
        return self.database_url or f"sqlite:///{self.data / DATABASE}"

    @property
    def on_sqlite(self) -> bool:
        """Whether the database is a SQLite file: one server at a time works on it, and locks its folder."""
        return self.database.startswith("sqlite:")

    @property
    def payload_folder(self) -> Path | None:
        """The folder for payloads; None if the database stores them."""
        default = "folder" if self.on_sqlite else "database"
        return self.data / PAYLOADS if (self.payload_store or default) == "folder" else None

    @property
    def workspaces(self) -> Workspaces:
        """The agents' folders in the data folder; absolute, for programs that run in them."""
        return Workspaces(self.data.absolute())

    def __repr__(self) -> str:
        shown = ((s.name, "…" if s.secret and s.value else s.value) for s in self.describe())
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def describe(self) -> list["Described"]:
        """Every setting with its documentation, for people."""
        hints = get_type_hints(Settings, include_extras=True)
        return [_describe(name, hints[name], getattr(self, name)) for name in self.__struct_fields__]


class Described(msgspec.Struct, frozen=True):
    """One setting as `threadkeep settings` prints it."""

    name: str
    value: object
    documentation: str
    secret: bool


class Misnamed(msgspec.Struct, frozen=True):
    """A name in the environment that looks like a setting but isn't: mistyped, or from another version."""

    name: str
    meant: str | None
    """The setting with a similar name."""

    @property
    def message(self) -> str:
        """What is wrong."""
        return f"{self.name} is not a setting and has no effect."

    @property
    def advice(self) -> str:
        """What to do about it."""
        return f"Did you mean {self.meant}?" if self.meant else "Run `threadkeep settings` for a list."


def misnamed(environment: Mapping[str, str] = os.environ) -> list[Misnamed]:
    """Variables without effect. Not refused: orchestrators such as Kubernetes add their own names."""
    known = [name.upper() for name in (*Settings.__struct_fields__, "config")]
    given = sorted(name.removeprefix(PREFIX) for name in environment if name.startswith(PREFIX))
    found: list[Misnamed] = []
    for name in given:
        if name not in known and name not in _GIVEN_TO_PROGRAMS:
            near = difflib.get_close_matches(name, known, 1)
            found.append(Misnamed(PREFIX + name, PREFIX + near[0] if near else None))
    return found


def settings_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The settings file, if it exists."""
    return Path(_value(environment, f"{PREFIX}CONFIG") or FILE_NAME)


def open_to_others(file: Path) -> str | None:
    """Why another account can change a file; None if none can. Root can change everything."""
    try:
        for path in (file.absolute(), file.absolute().parent):
            found = path.stat()
            if found.st_uid not in {os.geteuid(), 0}:
                return f"{path} belongs to another account."
            is_sticky = (
                path.is_dir() and found.st_mode & stat.S_ISVTX
            )  # there, only owners remove their files
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
                return f"Other accounts can write to {path}."
    except OSError:
        return None
    return None


def promptx_project(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that PromptX uses on its own, by PromptX's own variable."""
    return Path(_value(environment, "PROMPTX_PROJECT_DIR") or ".").absolute()


def _value(environment: Mapping[str, str], name: str) -> str | None:
    value = environment.get(name)
    return None if _is_missing(value) else value


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, str) and is_blank(value))


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if not is_blank(part))


def _split(url: str, name: str) -> SplitResult:
    """The parts of an address; the error for an invalid one doesn't repeat it: it may contain a password."""
    try:
        return urlsplit(url)
    except ValueError as exc:
        raise SettingsError(f"{PREFIX}{name} is not a valid URL.") from exc


def _choose_gateway(given: dict[str, object], environment: Mapping[str, str]) -> None:
    """A provider's own key in the environment selects that provider by default."""
    for gateway in ("anthropic", "openai"):
        if key := _value(environment, f"{gateway.upper()}_API_KEY"):
            given.setdefault("gateway", gateway)
            if given["gateway"] == gateway:
                given.setdefault("gateway_api_key", key)


def _describe(name: str, hint: Any, value: object) -> Described:
    metas = [meta for meta in hint.__metadata__ if isinstance(meta, Meta)]
    documentation = next(meta.description for meta in metas if meta.description)
    secret = any((meta.extra or {}).get("secret") for meta in metas)
    return Described(name, value, documentation, secret)


def _read_file(file: Path, *, required: bool) -> dict[str, object]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise SettingsError(f"Settings file {file} not found.") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(f"Couldn't read the settings file {file}: {exc}") from exc


def _to_path(wanted: type, value: object) -> object:
    if wanted is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    raise TypeError(f"expected {wanted.__name__}")
