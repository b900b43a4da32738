"""Builds what the package carries beside its code: the web page and the bill of materials."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
import page
import sbom


class WheelHook(BuildHookInterface[Any]):
    """The wheel carries the page; a machine without node gets one from PyPI for as long as it builds."""

    def dependencies(self) -> list[str]:
        """What building needs beside hatchling."""
        return [] if page.is_built() or page.has_node() else [page.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Comes before every build."""
        page.build()
        build_data["sbom_files"].append(str(sbom.build()))
