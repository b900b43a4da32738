"""Where settings come from: a file and the environment. Nothing else in Threadkeep reads either."""

import os
import stat
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.values import PREFIX, value_in

FILE_NAME = "threadkeep.toml"
IN_FILE = "_FILE"
"""Ends the name of a variable that names the file with a secret setting's value."""


def settings_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The settings file, if it exists."""
    return Path(value_in(environment, f"{PREFIX}CONFIG") or FILE_NAME)


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
    return Path(value_in(environment, "PROMPTX_PROJECT_DIR") or ".").absolute()


def read_file(file: Path, *, required: bool) -> dict[str, object]:
    """The settings in a file; none if the file doesn't exist and need not."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise SettingsError(f"Settings file {file} not found.") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SettingsError(f"Couldn't read the settings file {file}: {exc}") from exc


def secret_files(environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The files that variables name, as orchestrators mount them, by the settings whose values they have."""
    return {
        name.removeprefix(PREFIX).removesuffix(IN_FILE).lower(): Path(file)
        for name in environment
        if name.startswith(PREFIX) and name.endswith(IN_FILE) and (file := value_in(environment, name))
    }


def read_secret_files(names: Collection[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The secret settings that are in files of their own."""
    found: dict[str, str] = {}
    for name, file in secret_files(environment).items():
        if name not in names:
            continue
        found[name] = _secret_in(environment, f"{PREFIX}{name.upper()}", file)
    return found


def _secret_in(environment: Mapping[str, str], variable: str, file: Path) -> str:
    """The secret of a variable that is in a file instead."""
    if value_in(environment, variable) is not None:
        raise SettingsError(f"Set either {variable} or {variable}{IN_FILE}, not both.")
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise SettingsError(f"{variable}{IN_FILE}: Couldn't read {file}: {exc.strerror}.") from exc
    except UnicodeDecodeError:
        raise SettingsError(f"{variable}{IN_FILE}: {file} isn't text.") from None
    if not secret:
        raise SettingsError(f"{variable}{IN_FILE}: {file} is empty.")
    return secret


def read_agents(given: dict[str, object]) -> None:
    """The agents in code that the settings file lists: `load` in its table `agents`."""
    table = given.get("agents")
    if isinstance(table, dict):
        fields = cast("dict[str, object]", table)
        if unknown := next((name for name in fields if name != "load"), None):
            raise SettingsError(f"The table [agents] of the settings file has only `load`, not `{unknown}`.")
        given["agents"] = fields.get("load", ())


def read_secrets(given: dict[str, object], environment: Mapping[str, str], tables: str, secret: str) -> None:
    """Secrets in tables of the settings file that are in the environment: `…_env` names the variable.

    As with our own variables, `VARIABLE_FILE` can name a file with the value instead.
    """
    found = given.get(tables)
    if not isinstance(found, dict):
        return
    for table in cast("dict[str, object]", found).values():
        fields = cast("dict[str, object]", table) if isinstance(table, dict) else {}
        variable = fields.get(f"{secret}_env")
        if not isinstance(variable, str):
            continue
        if file := table_secret_file(variable, environment):
            fields[secret] = _secret_in(environment, variable, file)
        elif (value := value_in(environment, variable)) is not None:
            fields[secret] = value


def table_secret_file(variable: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file that has the value of a variable which a table of the settings file names, if one does."""
    file = value_in(environment, f"{variable}{IN_FILE}")
    return Path(file) if file else None


KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
}
"""Where each gateway's key is by default; the first one found selects the gateway."""


def choose_gateway(given: dict[str, object], environment: Mapping[str, str]) -> None:
    """A provider's own key in the environment selects that provider by default."""
    for gateway, variable in KEY_VARIABLES.items():
        if key := value_in(environment, variable):
            given.setdefault("gateway", gateway)
            if given["gateway"] == gateway:
                given.setdefault("gateway_api_key", key)
