"""Keeps our secrets from the other programs of our account, such as those that we run for agents."""

import ctypes
import os
import sys

from threadkeep.settings import PREFIX, Settings

PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")

_SET_DUMPABLE = 4


def keep_secrets_private(settings: Settings) -> None:
    """Nobody looks into this process, and its environment has no secrets: they have been read.

    What the operator hands on to MCP servers stays.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    ours = (PREFIX + it.name.upper() for it in settings.describe() if it.secret)
    for name in (*ours, *PROVIDER_KEYS):
        if name in os.environ and name not in settings.mcp_pass_environment:
            _wipe(name)


def _wipe(name: str) -> None:
    """Takes a variable out, and its value out of the memory that `/proc/…/environ` shows."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    if address := getenv(os.fsencode(name)):
        ctypes.memset(address, 0, len(os.fsencode(os.environ[name])))
    del os.environ[name]
