"""What a user may add as a server: its program, its address, its secrets.

A refusal names the field and never repeats a value: it may be a secret.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from threadkeep.domain.errors import InvalidRequest, McpCommandNotAllowed, McpConfigInvalid, SecretUnreadable
from threadkeep.domain.mcp import StdioServer
from threadkeep.domain.secret import Secret
from threadkeep.domain.text import check_storable
from threadkeep.mcp.processes.packages import RUNNERS, check_package
from threadkeep.networks import Network, is_denied_host, is_own_host

MOST_ARGS = 64
MOST_ARG_CHARACTERS = 2_000
MOST_CWD_CHARACTERS = 255
MOST_URL_CHARACTERS = 2_000
MOST_SECRETS = 64
MOST_SECRET_CHARACTERS = 8_000

_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")

# Variables that make a program load or run something other than what was allowed, and our own.
_ENV_OF_OTHERS = re.compile(
    r"""(?: LD_ | DYLD_ | PYTHON | NODE_(?!ENV$) | NPM_ | UV_ | PIP_ | GIT_ | PERL | RUBY | JAVA_ | JDK_
        | BASH_ | XDG_ | THREADKEEP_ ).*
    | PATH | HOME | USER | SHELL | ENV | IFS | CDPATH | PWD | TMPDIR | PS4 | PROMPT_COMMAND | SHELLOPTS
    | _JAVA_OPTIONS | CLASSPATH | EDITOR | VISUAL | PAGER | BROWSER | COMSPEC | PATHEXT | SYSTEMROOT
    | GCONV_PATH | LOCPATH | NLSPATH | HOSTALIASES | RESOLV_HOST_CONF | GLIBC_TUNABLES | MALLOC_.*
    | OPENSSL_.* | SSL_CERT_.* | SSLKEYLOGFILE""",
    re.VERBOSE | re.IGNORECASE,
)
# Headers that belong to the connection and to the protocol.
_HEADERS_OF_OTHERS = re.compile(
    r"""host | connection | content-.* | transfer-encoding | te | trailer | upgrade | expect | keep-alive
    | accept | accept-encoding | proxy-.* | mcp-.* | last-event-id | (?:x-)?threadkeep-.*""",
    re.VERBOSE | re.IGNORECASE,
)


def check_stdio(server: StdioServer, allowed_commands: Collection[str]) -> None:
    """Refuses every program but those that the operator allows, each by its bare name."""
    if not _COMMAND.fullmatch(server.command) or server.command not in allowed_commands:
        raise McpCommandNotAllowed(
            f"The command must be one of: {', '.join(sorted(allowed_commands)) or '(none)'}. The operator "
            "can allow more with THREADKEEP_MCP_ALLOWED_COMMANDS.",
            param="command",
        )
    if len(server.args) > MOST_ARGS:
        raise McpConfigInvalid(f"You can set at most {MOST_ARGS} arguments.", param="args")
    for number, arg in enumerate(server.args):
        _check_text(arg, f"args[{number}]", MOST_ARG_CHARACTERS)
    if server.command in RUNNERS:
        check_package(server.command, server.args)
    if server.cwd is not None:
        _check_cwd(server.cwd)
    _check_secrets(server.env, "env", _ENV_NAME, _ENV_OF_OTHERS)
    for name, value in server.env.items():
        _check_secret_text(value, f"env.{name}")


def check_remote(
    url: str, headers: Mapping[str, Secret], *, allow_private: bool, denied: Sequence[Network] = ()
) -> None:
    """Refuses all but http(s) addresses, and those of our own network unless that is allowed."""
    if len(url) > MOST_URL_CHARACTERS or not _URL.fullmatch(url) or "\\" in url:
        raise McpConfigInvalid(
            "The URL must start with http:// or https://, use only ASCII, and have at most "
            f"{MOST_URL_CHARACTERS} characters.",
            param="url",
        )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.fragment:
        raise McpConfigInvalid("This isn't a valid server URL.", param="url")
    if parts.username is not None or parts.password is not None:
        raise McpConfigInvalid(
            "The URL can't contain a user name or password. Send an Authorization header instead.",
            param="url",
        )
    if is_denied_host(host, denied):
        raise McpConfigInvalid("The URL points to a network blocked by the operator.", param="url")
    if not allow_private and is_own_host(host):
        raise McpConfigInvalid(
            "The URL points to a private or local network. The operator can allow that with "
            "THREADKEEP_MCP_ALLOW_PRIVATE.",
            param="url",
        )
    _check_secrets(headers, "headers", _HEADER_NAME, _HEADERS_OF_OTHERS)
    for name, value in headers.items():
        _check_secret_text(value, f"headers.{name}", _HEADER_VALUE)


def _check_cwd(cwd: str) -> None:
    _check_text(cwd, "cwd", MOST_CWD_CHARACTERS)
    if not cwd or cwd.startswith(("/", "~")) or "\\" in cwd or ":" in cwd or ".." in cwd.split("/"):
        raise McpConfigInvalid(
            "The folder must be a relative path inside the agent's workspace.", param="cwd"
        )


def _check_secrets(
    given: Mapping[str, Secret], field: str, form: re.Pattern[str], of_others: re.Pattern[str]
) -> None:
    if len(given) > MOST_SECRETS:
        raise McpConfigInvalid(f"You can set at most {MOST_SECRETS} values.", param=field)
    if len({name.lower() for name in given}) < len(given):
        raise McpConfigInvalid("Two names differ only in case.", param=field)
    for name in given:
        if not form.fullmatch(name):
            raise McpConfigInvalid("The name is too long or contains invalid characters.", param=field)
        if of_others.fullmatch(name):
            raise McpConfigInvalid(
                "You can't set this name: Threadkeep or the system uses it.", param=f"{field}.{name}"
            )


def _check_secret_text(secret: Secret, param: str, form: re.Pattern[str] | None = None) -> None:
    try:
        value = secret.reveal()
    except SecretUnreadable as exc:
        raise McpConfigInvalid("The stored value can't be decrypted. Enter it again.", param=param) from exc
    if len(value) > MOST_SECRET_CHARACTERS:
        raise McpConfigInvalid(f"A value can have at most {MOST_SECRET_CHARACTERS} characters.", param=param)
    if form and not form.fullmatch(value):
        raise McpConfigInvalid("A header value must be one line of printable ASCII characters.", param=param)
    _check_storable(value, param)


def _check_text(text: str, param: str, most: int) -> None:
    if len(text) > most:
        raise McpConfigInvalid(f"`{param}` can have at most {most} characters.", param=param)
    if _CONTROL.search(text):
        raise McpConfigInvalid("Line breaks and other control characters aren't allowed.", param=param)
    _check_storable(text, param)


def _check_storable(text: str, param: str) -> None:
    try:
        check_storable(text, param)
    except InvalidRequest as exc:
        raise McpConfigInvalid(exc.message, param=param) from exc
