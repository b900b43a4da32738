"""What `npx` and `uvx` may be asked to run: one package from the registry, by its name.

Both also run other things: a program installed on the machine, a shell text, a folder, an address, an
interpreter. A package is still a stranger's program: the sandbox limits what it can reach.
"""

import re
from collections.abc import Sequence

from threadkeep.domain.errors import McpConfigInvalid

RUNNERS = ("npx", "uvx")

# After `@`, npx accepts a registry tag; uvx takes anything but a version for a local folder.
_PACKAGES = {
    "npx": re.compile(
        r"""(?P<name> (?: @[a-z0-9~-][a-z0-9._~-]{0,99}/ )? [a-z0-9~][a-z0-9._~-]{0,213} )
        (?P<version> @ [\^~]? [0-9a-z][0-9a-z.+_-]{0,63} )?""",
        re.VERBOSE | re.IGNORECASE,
    ),
    "uvx": re.compile(
        r"""(?P<name> [a-z0-9] (?: [a-z0-9._-]{0,212} [a-z0-9] )? )
        (?P<version> @latest | (?: @ | == ) [0-9][0-9a-z.+_-]{0,63} )?""",
        re.VERBOSE | re.IGNORECASE,
    ),
}
_ARCHIVES = (".tgz", ".tar", ".tar.gz", ".whl", ".zip")
# These, with or without a number, run whatever their arguments say.
_INTERPRETERS = re.compile(
    r"""(?: ash | bash | csh | dash | fish | ksh | sh | tcsh | zsh | busybox | toybox | cmd | pwsh
        | env | xargs | su | sudo | bun | bunx | concurrently | corepack | cross-env | cross-env-shell | deno
        | ipython | java | lua | node | nodejs | nodemon | npm | npx | perl | php | pip | pipx | pnpm
        | ruby | shx | ts-node | tsx | uv | uvx | yarn | zx
        | powershell ) [0-9.]*
    # Whatever uvx takes for a Python, such as cpython, pypy39 and python3.13t.
    | (?: c? pythonw? | pypy | graalpy | pyodide ) (?: [0-9.] .* )?""",
    re.VERBOSE | re.IGNORECASE,
)


def check_package(command: str, args: Sequence[str]) -> None:
    """Refuses everything but one package, with an optional version; its own arguments follow it."""
    at = 1 if command == "npx" and args and args[0] == "-y" else 0
    if len(args) <= at:
        raise McpConfigInvalid(f"Name the package for `{command}` to run.", param="args")
    package = _PACKAGES[command].fullmatch(args[at])
    if package is None or _names_a_file(package):
        before = "only -y can come before it" if command == "npx" else "nothing can come before it"
        raise McpConfigInvalid(
            f"`{command}` takes one package name, such as name or name@1.2.3; {before}.",
            param=f"args[{at}]",
        )
    if _INTERPRETERS.fullmatch(package["name"]):
        raise McpConfigInvalid(
            f"`{command}` can't run an interpreter or a shell. The operator can allow a command by name "
            "with THREADKEEP_MCP_ALLOWED_COMMANDS.",
            param=f"args[{at}]",
        )


def _names_a_file(package: "re.Match[str]") -> bool:
    """Whether it would be a file in the program's folder, where others may have put one."""
    return any(part.lower().endswith(_ARCHIVES) for part in (package["name"], package["version"] or ""))


def launched_args(command: str, args: Sequence[str]) -> tuple[str, ...]:
    """The arguments to run a package: fetched, never a program of that name on this machine."""
    if command not in RUNNERS:
        return tuple(args)
    rest = args[1:] if command == "npx" and args[0] == "-y" else args
    package = _PACKAGES[command].fullmatch(rest[0])
    assert package  # it was checked when it was saved, and again before it runs
    named = rest[0] if package["version"] else f"{rest[0]}@latest"
    return (*(("-y",) if command == "npx" else ()), named, *rest[1:])
