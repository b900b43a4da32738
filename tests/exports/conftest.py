"""The same Threadkeep as for imports."""

from tests.imports.conftest import here

__all__ = ["here"]
