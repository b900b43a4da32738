"""Hides our secrets from other programs of our account, such as those that we run for agents."""

import ctypes
import os
import sys

from threadkeep.settings import PREFIX, Settings

PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")

_SET_DUMPABLE = 4


def keep_secrets_private(settings: Settings) -> None:
    """Protects this process from inspection, and removes secrets, already read, from its environment.

    Variables that the operator passes on to MCP servers stay, and so do the keys of providers if programs of
    agents run here: they may ask a provider themselves.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    ours = (PREFIX + it.name.upper() for it in settings.describe() if it.secret)
    named = (it.api_key_env for it in settings.gateways.values())
    of_providers = (it.client_secret_env for it in settings.sign_in.values())
    of_models = () if settings.agents else PROVIDER_KEYS
    for name in filter(None, (*ours, *of_models, *named, *of_providers)):
        if name in os.environ and name not in settings.mcp_pass_environment:
            _wipe(name)


def _wipe(name: str) -> None:
    """Removes a variable, and its value from the memory that `/proc/…/environ` shows."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    if address := getenv(os.fsencode(name)):
        ctypes.memset(address, 0, len(os.fsencode(os.environ[name])))
    del os.environ[name]
