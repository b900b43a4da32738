"""Reading PromptX role files: every layout, every reference, and nothing beyond the folder."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mcp.roles import DOMAIN, LAWYER, ROLE, write
from threadkeep.domain.errors import RoleNotFound
from threadkeep.ports.roles import Role
from threadkeep.tools import dpml
from threadkeep.tools.dpml import MOST_CHARACTERS, MOST_FILE_BYTES, Resource, compose, read_resources


def read(project: Path, role_id: str = "lawyer") -> Role:
    return compose(role_id, read_resources(project / ".promptx"))


def role(text: str, *others: Resource) -> Role:
    return compose("r", [Resource("role", "r", "/r", text), *others])


def thought(id_: str, text: str) -> Resource:
    return Resource("thought", id_, "/r/thought", text)


@pytest.mark.parametrize("layout", [f"{DOMAIN}/lawyer", f"{ROLE}/lawyer"])
def test_role_is_read_with_all_that_it_refers_to(tmp_path: Path, layout: str):
    found = read(write(tmp_path, LAWYER, layout))
    assert found == Role(
        "lawyer",
        "律师",
        "<role><personality><thought>Doubt first.</thought></personality>"
        "<principle><execution>Read every clause.</execution></principle>"
        "<knowledge><knowledge>合同法</knowledge></knowledge></role>",
    )


def test_role_is_found_by_its_title_too(tmp_path: Path):
    assert read(write(tmp_path, LAWYER, f"{DOMAIN}/lawyer"), " 律师 ").id == "lawyer"


def test_unknown_role_is_an_error_that_names_the_known_ones(tmp_path: Path):
    write(tmp_path, LAWYER, f"{DOMAIN}/lawyer")
    write(tmp_path, {"poet.role.md": "<role>Sing.</role>"}, f"{ROLE}/poet")
    with pytest.raises(RoleNotFound) as refused:
        read(tmp_path, "jester")
    assert refused.value.message == "Role 'jester' not found. Available roles: lawyer (律师), poet."


def test_folder_without_roles_has_none(tmp_path: Path):
    (tmp_path / "file").touch()
    assert read_resources(tmp_path / "nowhere") == []
    assert read_resources(tmp_path / "file") == []
    with pytest.raises(RoleNotFound, match="Available roles: none"):
        read(tmp_path)


def test_role_prefers_the_files_of_its_own_folder(tmp_path: Path):
    write(tmp_path, {"doubt.thought.md": "Somebody else's."}, f"{DOMAIN}/accountant/thought")
    write(tmp_path, LAWYER, f"{DOMAIN}/lawyer")
    assert "Doubt first." in read(tmp_path).text


def test_role_may_use_the_files_of_others(tmp_path: Path):
    write(tmp_path, {"care.thought.md": "With care."}, f"{DOMAIN}/nurse/thought")
    write(tmp_path, {"r.role.md": "<role>@!thought://care</role>"}, f"{ROLE}/r")
    assert read(tmp_path, "r").text == "<role>With care.</role>"


def test_references_in_references_are_followed():
    found = role("<role>@!thought://a.</role>", thought("a", "A (@!thought://b)"), thought("b", "B"))
    assert found == Role("r", "r", "<role>A (B)</role>")  # the dot belongs to nobody's name


def test_circles_end():
    found = role("@!thought://a", thought("a", "A @!thought://b"), thought("b", "B @!thought://a"))
    assert found.text == "A B [thought://a: see above]"


def test_what_is_missing_is_named_once_and_in_its_place():
    found = role("1 @!thought://x 2 @!thought://x @!knowledge:// 3 @!execution://../../etc/passwd")
    assert found.missing == ("thought://x", "knowledge://", "execution://../../etc/passwd")
    assert found.text.startswith("1 [thought://x is missing] 2 [thought://x is missing]")


def test_references_that_multiply_do_not_grow():
    doubling = [thought(f"t{n}", f"{n} @!thought://t{n + 1} @!thought://t{n + 1}") for n in range(10)]
    assert role("@!thought://t0", *doubling).text.count("see above") == 9


def test_nesting_without_end_is_cut():
    chain = [thought(f"t{n}", f"@!thought://t{n + 1}") for n in range(400)]
    assert role("@!thought://t0", *chain).missing == (f"thought://t{dpml.MOST_NESTED}",)


def test_comments_are_for_authors():
    assert role("<!-- 1 --><role>a<!-- @!thought://x -->b<!-- open</role>").text == "<role>ab<!-- open</role>"


def test_other_ways_to_refer_are_left_as_they_are():
    assert role("@thought://a @?file://b @!role://c").text == "@thought://a @?file://b @!role://c"


def test_overlong_role_is_cut_with_a_mark():
    text = role("x" * (MOST_CHARACTERS + 1)).text
    assert text.startswith("x" * MOST_CHARACTERS + "\n[cut here")


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path):
    outside = write(tmp_path / "outside", {"secret.thought.md": "SECRET", "s.role.md": "<role>SECRET</role>"})
    project = write(tmp_path / "project", {"r.role.md": "<role>@!thought://secret</role>"}, f"{ROLE}/r")
    (project / ROLE / "r" / "secret.thought.md").symlink_to(outside / "secret.thought.md")
    (project / ROLE / "linked").symlink_to(outside)
    assert [it.id for it in read_resources(project / ".promptx")] == ["r"]
    assert read(project, "r").missing == ("thought://secret",)
    whole = tmp_path / "linked"
    whole.mkdir()
    (whole / ".promptx").symlink_to(outside)
    assert read_resources(whole / ".promptx") == []


def test_pipes_and_huge_files_are_left_out(tmp_path: Path):
    folder = write(tmp_path, {"r.role.md": "<role>R</role>"}, f"{ROLE}/r") / ROLE / "r"
    os.mkfifo(folder / "pipe.thought.md")
    (folder / "huge.thought.md").write_bytes(b"x" * (MOST_FILE_BYTES + 1))
    (folder / "large.thought.md").write_bytes(b"x" * MOST_FILE_BYTES)
    assert {it.id for it in read_resources(tmp_path)} == {"r", "large"}


def test_files_are_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, {f"{n}.thought.md": "12345" for n in range(6)})
    write(tmp_path, {"deep.thought.md": "x"}, "/".join("abcdefgh").lstrip("/"))
    monkeypatch.setattr(dpml, "MOST_FILES", 4)
    assert [it.id for it in read_resources(tmp_path)] == ["0", "1", "2", "3"]
    monkeypatch.setattr(dpml, "MOST_BYTES", 12)
    assert [it.id for it in read_resources(tmp_path)] == ["0", "1"]


def test_bytes_that_are_no_text_become_text(tmp_path: Path):
    (tmp_path / "r.role.md").write_bytes(b"\xef\xbb\xbf<role>\xff\x00</role>")
    (found,) = read_resources(tmp_path)
    assert found.text == "<role>\ufffd\ufffd</role>"


NAMES = st.sampled_from(["a", "b", "法", "é", "e\u0301", ".", "..", "../x", "a.b", "r", "-", "a\\b"])
KINDS = st.sampled_from(["role", "thought", "execution", "knowledge"])
PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["<role>", "</role>", "<!--", "-->", "# ", "\n", "@!", "://", "@!thought://"]),
    st.builds("@!{}://{}".format, KINDS, NAMES),
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(st.lists(st.builds(Resource, KINDS, NAMES, st.sampled_from(["/r", "/r/x", "/s"]), TEXTS)), TEXTS)
def test_anything_composes_to_a_role_or_to_its_error(resources: list[Resource], role_id: str):
    for wanted in (role_id, "r", "a"):
        try:
            found = compose(wanted, resources)
        except RoleNotFound as exc:
            assert "not found. Available roles" in exc.message
        else:
            assert len(found.text) <= MOST_CHARACTERS + 100
            assert any(it.kind == "role" and found.id == it.id for it in resources)


@settings(max_examples=50)
@given(st.lists(st.tuples(NAMES, KINDS, TEXTS | st.binary(max_size=50)), max_size=6), NAMES)
def test_any_folder_is_read_without_leaving_it(files: list[tuple[str, str, str | bytes]], role_id: str):
    with tempfile.TemporaryDirectory() as folder:
        write(
            Path(folder),
            {f"{name}.{kind}.md": "OUTSIDE" for name in ("a", "x") for kind in ("thought", "role")},
        )
        inside = Path(folder) / "inside"
        inside.mkdir()
        for name, kind, content in files:
            data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
            if "/" not in name:
                (inside / f"{name}.{kind}.md").write_bytes(data.replace(b"OUTSIDE", b""))
        with suppress(RoleNotFound):
            assert "OUTSIDE" not in compose(role_id, read_resources(inside)).text
