"""Whether the settings are known and consistent."""

from collections.abc import Iterator, Mapping

from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError
from threadkeep.settings import Settings, misnamed, open_to_others, settings_file


def refused_settings(error: SettingsError) -> Finding:
    """The finding for invalid settings, without which nothing else can be checked."""
    return Finding(
        "settings", "problem", error.message, "Fix it; `threadkeep settings` describes each setting."
    )


def check_settings(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Checks for mistyped names, and for a server that strangers could reach."""
    unknown = misnamed(environment)
    for it in unknown:
        yield Finding("settings", "warning", it.message, it.advice)
    file = settings_file(environment).absolute()
    if (reason := open_to_others(file)) is not None:
        advice = f"Let only this account write to {file} and its folder."
        yield Finding("settings", "warning", f"The settings file isn't safe: {reason}", advice)
    try:
        settings.check_safe_to_listen()
    except SettingsError as exc:
        yield Finding("settings", "problem", exc.message, "Set up sign-in, or listen on 127.0.0.1.")
        return
    who = "users sign in" if settings.signs_in else "without sign-in, for this machine only"
    if not unknown:
        source = f" in {file}" if file.exists() else ""
        yield Finding("settings", "ok", f"All settings{source} are valid; {who}.")
