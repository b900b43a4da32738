"""Pages on the AI SDK's packages, built by vite and served with Threadkeep's API beside them."""

import os
import re
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.clients.ai_sdk.driver import PACKAGES
from tests.mcp.npm import install
from tests.serving import END_S

EXAMPLE = Path(__file__).parents[3] / "examples" / "use-chat"
NAMES = {5: ("ai-5", "ai-sdk-react-5"), 6: ("ai-6", "ai-sdk-react-6"), 7: ("ai", "@ai-sdk/react")}
"""The packages of each version, as the lock file names them."""


def copy_example(folder: Path, version: int) -> Path:
    """The example, on another version of the AI SDK."""
    page = folder / "page"
    shutil.copytree(EXAMPLE, page, ignore=shutil.ignore_patterns("node_modules"))
    ai, react = NAMES[version]
    for file in (page / "src").glob("*.jsx"):
        text = file.read_text().replace("version=7", f"version={version}")
        if version == 5:  # which has no approvals
            text = text.replace("CompleteWithApprovalResponses", "CompleteWithToolCalls")
        file.write_text(text.replace('"@ai-sdk/react"', f'"{react}"').replace('"ai"', f'"{ai}"'))
    return page


@contextmanager
def served(
    page: Path,
    files: Mapping[str, str] | None = None,
    *,
    locked: Path = PACKAGES,
    **environment: str,
) -> Generator[str]:
    """A page and the API under one address, with the packages of a lock file."""
    for name, text in (files or {}).items():
        (page / name).write_text(text)
    packages = install(locked)
    (page / "node_modules").symlink_to(packages / "node_modules")
    env = {"PATH": f"{packages / 'bin'}:{os.defpath}", "NO_COLOR": "1", **environment}
    vite = [str(packages / "bin" / "node"), "node_modules/vite/bin/vite.js"]
    subprocess.run([*vite, "build", "--logLevel", "error"], cwd=page, env=env, check=True)
    process = subprocess.Popen(
        [*vite, "preview", "--host", "127.0.0.1", "--port", "0"],
        cwd=page,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        for line in process.stdout:
            if found := re.search(r"(http://127\.0\.0\.1:\d+)", line):
                yield found[1]
                break
        else:
            raise AssertionError("vite did not serve the page")
    finally:
        process.terminate()
        process.communicate(timeout=END_S)
