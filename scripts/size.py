"""How big the house is at a commit, by default the latest: `python -m scripts.size [COMMIT …]`."""

import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from scripts.page import BUILT

ROOT = Path(__file__).resolve().parents[1]


def main(commits: list[str]) -> None:
    """Prints a row for each commit."""
    for commit in commits or ["HEAD"]:
        print(f"{commit}: " + ", ".join(f"{count:,} {what}" for what, count in sizes(commit).items()))
    if (BUILT / "index.html").exists():
        print(f"first load of the page as built: {first_load():,} bytes")


def sizes(commit: str) -> Mapping[str, int]:
    """What a reader has to know of, without tests."""
    counts: Counter[str] = Counter()
    for path, text in _sources(commit):
        language = "Python" if path.suffix == ".py" else "TypeScript"
        counts[f"lines of {language}"] += text.count("\n")
        if language == "TypeScript":
            continue
        classes = [it for it in ast.walk(ast.parse(text)) if isinstance(it, ast.ClassDef)]
        counts["modules"] += 1
        counts["classes"] += len(classes)
        counts["Protocols"] += sum(
            any("Protocol" in ast.unparse(base) for base in it.bases) for it in classes
        )
    return counts


def first_load() -> int:
    """The bytes that a browser receives before it can show anything, as brotli."""
    packed = (it.with_name(f"{it.name}.br") for it in first_files())
    return (BUILT / "index.html").stat().st_size + sum(it.stat().st_size for it in packed)


def first_files() -> list[Path]:
    """What the page's HTML loads at once."""
    html = (BUILT / "index.html").read_text("utf-8")
    return [BUILT / it for it in re.findall(r'(?:src|href)="\./(assets/[^"]+\.(?:js|css))"', html)]


def _sources(commit: str) -> Iterator[tuple[PurePosixPath, str]]:
    packed = subprocess.run(
        ["git", "archive", commit, "src", "web"], cwd=ROOT, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.suffix not in (".py", ".ts", ".tsx") or "tests" in path.parts:
                continue
            if (file := archive.extractfile(member)) is not None:
                yield path, file.read().decode()


if __name__ == "__main__":
    main(sys.argv[1:])
