import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
BILL = re.compile(r"threadkeep-[^/]+\.dist-info/sboms/threadkeep\.cdx\.json")


def build(target: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def bill(wheel: Path) -> Any:
    with ZipFile(wheel) as archive:
        (name,) = filter(BILL.fullmatch, archive.namelist())
        return json.loads(archive.read(name))


def components(bill: Any) -> set[tuple[str, str]]:
    return {(component["name"], component["version"]) for component in bill["components"]}


def test_wheel_carries_the_page_and_records_its_bill_of_materials(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        assert "threadkeep/page/index.html" in names
        assert "threadkeep/py.typed" in names
        assert "threadkeep/weights.lock" in names
        licences = archive.read("threadkeep/page/third-party-notices.txt").decode()
        assert "\nreact 19." in licences
        assert "Apache ECharts" in licences
        assert (
            "threadkeep/page/assets/inter-license.txt" in names
        )  # the typeface's, which comes with its pieces
        assert BILL.search(archive.read(record).decode())


def test_source_archive_carries_all_that_the_page_is_built_from(tmp_path: Path) -> None:
    """Also web/packages, to which links in node_modules lead."""
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    web = ROOT / "web"
    parts = [
        web / "index.html",
        *(web / "src").rglob("*.ts*"),
        *(web / "packages" / "client" / "src").rglob("*.ts"),
    ]
    assert {path.relative_to(ROOT).as_posix() for path in parts} <= names
    assert not [name for name in names if "node_modules" in name]


def test_bill_lists_every_locked_package_of_python(bill: Any) -> None:
    lock = (ROOT / "requirements" / "run.lock").read_text("utf-8")
    locked = set(re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==(\S+)", lock, re.MULTILINE))
    assert len(locked) > 30
    assert locked <= components(bill)


def test_bill_lists_what_the_page_has_in_it_and_none_of_the_tools_that_build_it(bill: Any) -> None:
    page = json.loads((ROOT / "web" / "package.json").read_text("utf-8"))
    names = {name for name, _ in components(bill)}
    own = {"@threadkeep/client", "@threadkeep/react"}
    assert page["dependencies"].keys() - own <= names
    assert not own & names
    assert not page["devDependencies"].keys() - {"@types/react"} & names  # the types are a peer's too


def test_every_component_is_needed_and_everything_needed_is_a_component(bill: Any) -> None:
    refs = {component["bom-ref"] for component in bill["components"]}
    version = bill["metadata"]["component"]["version"]
    needed = {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]}
    assert needed == refs
    assert {entry["ref"] for entry in bill["dependencies"]} - refs == {"pkg:pypi/threadkeep@" + version}


def test_what_only_an_extra_brings_is_optional(bill: Any) -> None:
    scopes = {component["name"]: component["scope"] for component in bill["components"]}
    assert (scopes["starlette"], scopes["anyio"], scopes["react"]) == ("required",) * 3
    assert (scopes["psycopg"], scopes["numpy"]) == ("optional",) * 2


@pytest.mark.parametrize(("name", "vulnerable"), [("python-multipart", "0.0.26"), ("starlette", "0.49.0")])
def test_no_version_is_taken_that_a_request_can_stall(wheel: Path, name: str, vulnerable: str) -> None:
    """A host application may have an older one; what reads strangers' requests must not be."""
    with ZipFile(wheel) as archive:
        (metadata,) = (it for it in archive.namelist() if it.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    required = [Requirement(it.partition(": ")[2]) for it in lines if it.startswith("Requires-Dist: ")]
    (found,) = (it for it in required if it.name == name)
    assert not found.specifier.contains(vulnerable)
