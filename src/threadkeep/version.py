"""The version, as the package says it."""

from importlib.metadata import version

__version__ = version("threadkeep")
