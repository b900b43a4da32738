"""Writes the wheel's bill of materials: CycloneDX, from the lock files, the same bytes each time.

It lists the npm packages that are built into the page, and the Python packages that are installed beside the
wheel, in the versions that we test: `required` where every installation has them, `optional` where an extra
brings them.
"""

import base64
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "threadkeep.cdx.json"
NAMESPACE = uuid.UUID("f7ac5f8b-4d0e-5b3e-9a38-5a2d0f6b8f11")
OWN = re.compile(r"^threadkeep\b")


@dataclass(frozen=True, slots=True)
class Package:
    """One locked package, and the package URLs of what it needs."""

    purl: str
    name: str
    version: str
    needs: tuple[str, ...]
    optional: bool = False
    license: str | None = None
    sha512: str | None = None
    marker: str | None = None

    def component(self) -> dict[str, Any]:
        """As CycloneDX lists it."""
        found: dict[str, Any] = {
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            "version": self.version,
            "scope": "optional" if self.optional else "required",
            "purl": self.purl,
        }
        if self.sha512:
            found["hashes"] = [{"alg": "SHA-512", "content": self.sha512}]
        if self.license:
            is_id = re.fullmatch(r"[A-Za-z0-9.+-]+", self.license)
            found["licenses"] = [{"license": {"id": self.license}} if is_id else {"expression": self.license}]
        if self.marker:
            found["properties"] = [{"name": "threadkeep:marker", "value": self.marker}]
        return found


@dataclass(frozen=True, slots=True)
class Pin:
    """An entry of a lock file of pip."""

    name: str
    version: str
    marker: str | None
    needed_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def python_packages(lock: str, required: Iterable[str]) -> list[Package]:
    """What a lock file of pip lists; `required` names what the project itself depends on without extras."""
    pins = list(_pinned(lock))
    purls: dict[str, set[str]] = {}  # a package may be locked in one version for each Python
    needs: dict[str, set[str]] = {}
    for pin in pins:
        purls.setdefault(pin.name, set()).add(pin.purl)
        for other in pin.needed_by:
            needs.setdefault(other, set()).add(pin.name)
    always = _reachable(needs, required)
    return [
        Package(
            purl=pin.purl,
            name=pin.name,
            version=pin.version,
            needs=tuple(sorted(purl for name in needs.get(pin.name, ()) for purl in purls[name])),
            optional=pin.name not in always,
            marker=pin.marker,
        )
        for pin in pins
    ]


def _pinned(lock: str) -> Iterator[Pin]:
    for entry in re.split(r"\n(?=\S)", lock):
        if head := re.match(r"(\S+?)(?:\[.*?\])?==(\S+)(?: ; (.+?))? \\?\n", entry):
            said = re.findall(r"^ +#(?: via)? +(\S.*)$", entry, re.MULTILINE)
            yield Pin(head[1], head[2], head[3], tuple(by for by in said if not OWN.match(by)))


def _reachable(needs: dict[str, set[str]], start: Iterable[str]) -> set[str]:
    found, waiting = set[str](), list(start)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += needs.get(name, ())
    return found


def page_packages(lock: dict[str, Any]) -> list[Package]:
    """What npm's lock file lists and the page has in it: all but the tools that build and test it."""
    entries: dict[str, Any] = lock["packages"]
    packages: dict[str, Package] = {}
    for place, entry in bundled(lock):
        kinds = ("dependencies", "optionalDependencies", "peerDependencies")
        needed = (_resolved(entries, place, name) for kind in kinds for name in entry.get(kind, ()))
        made = Package(
            purl=_npm_purl(place, entry),
            name=_npm_name(place),
            version=entry["version"],
            needs=tuple(sorted({_npm_purl(other, entries[other]) for other in needed if other})),
            optional=bool(entry.get("optional")),
            license=entry.get("license"),
            sha512=_sha512(entry.get("integrity", "")),
        )
        packages[made.purl] = made
    return list(packages.values())


def bundled(lock: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The folders of those packages below `web`, with their entries in the lock file."""
    for place, entry in lock["packages"].items():
        if _is_foreign(place, entry) and not (entry.get("dev") or entry.get("devOptional")):
            yield place, entry


def _is_foreign(place: str, entry: dict[str, Any]) -> bool:
    """Whether it comes from the registry: the page's own packages are folders, and links to them."""
    return place.startswith("node_modules/") and not entry.get("link")


def _npm_name(place: str) -> str:
    return place.rpartition("node_modules/")[2]


def _npm_purl(place: str, entry: dict[str, Any]) -> str:
    return f"pkg:npm/{quote(_npm_name(place))}@{entry['version']}"


def _resolved(entries: dict[str, Any], place: str, name: str) -> str | None:
    """Where node finds a package that one at `place` imports: the nearest folder upwards that has it."""
    while True:
        candidate = f"{place}/node_modules/{name}".lstrip("/")
        if candidate in entries:
            return candidate
        if not place:
            return None
        place = place.rpartition("node_modules/")[0].rstrip("/")


def _sha512(integrity: str) -> str | None:
    kind, _, digest = integrity.partition("-")
    return base64.b64decode(digest).hex() if kind == "sha512" else None


def bill() -> dict[str, Any]:
    """The whole bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text("utf-8"))
    required = {_named(dependency) for dependency in project["dependencies"]}
    extras = {_named(it) for extra in project["optional-dependencies"].values() for it in extra}
    python = python_packages((ROOT / "requirements" / "run.lock").read_text("utf-8"), required)
    page = page_packages(lock)
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    direct = {package.purl for package in python if package.name in required | extras}
    entries = lock["packages"]
    named = (
        (f"node_modules/{name}", entries[f"node_modules/{name}"]) for name in entries[""]["dependencies"]
    )
    direct |= {_npm_purl(place, entry) for place, entry in named if _is_foreign(place, entry)}
    packages = sorted((*python, *page), key=lambda package: package.purl)
    made: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            }
        },
        "components": [package.component() for package in packages],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(direct)},
            *({"ref": package.purl, "dependsOn": list(package.needs)} for package in packages),
        ],
    }
    return {**made, "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps(made))}"}


def _named(dependency: str) -> str:
    """The package that a dependency names, as lock files write it."""
    name = re.match(r"[A-Za-z0-9._-]+", dependency)
    assert name
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def build() -> Path:
    """Writes the file; where it is."""
    BUILT.parent.mkdir(exist_ok=True)
    BUILT.write_text(json.dumps(bill(), indent=1) + "\n", "utf-8")
    return BUILT


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
