from collections import Counter

import pytest

from tests.conformance.requirements import DOCUMENTS, Requirement, parse, read_requirements


def test_every_requirement_of_the_documents_is_found() -> None:
    found = Counter(
        (requirement.document[:3], requirement.needs_tests) for requirement in read_requirements()
    )
    assert found == {
        ("000", False): 6,
        ("000", True): 16,
        ("001", False): 6,
        ("001", True): 12,
        ("002", False): 15 + 2,
        ("002", True): 23 + 7 + 10,  # scenarios, endpoints, error codes
        ("003", False): 4 + 3,
        ("003", True): 11 + 5 + 15 + 8,  # scenarios, edge cases, functional requirements, success criteria
        ("004", False): 4 + 1 + 4,
        ("004", True): 11 + 7,  # acceptance criteria, qualities
    }


def test_requirements_carry_the_ids_and_words_of_the_documents() -> None:
    titles = {requirement.id: requirement.title for requirement in read_requirements()}
    expected = {
        "CONV-008.1": "Manage MCP servers",
        "CONV-008.1-S2": "A server named `promptx` is 400 `MCP_NAME_RESERVED`, "
        "and the system's own stays as it is.",
        "002-ERR-GENERATION_ABORTED": "499: the generation was stopped.",
        "003-US4.1": "Deleting a conversation with 5 messages deletes all 5.",
        "FR-003": "A user has at most one conversation.",
        "004-NFR-performance": "Performance",
        "004-NFR-performance-1": "Listing conversations and reading one have a P99 below 100 ms.",
    }
    assert {key: titles.get(key) for key in expected} == expected


def test_added_clause_appears_by_itself() -> None:
    text = (DOCUMENTS / "001-conversation.md").read_text("utf-8") + "- **001-R6-S3** A new\n  clause.\n"
    assert list(parse("001", text))[-1] == Requirement("001-R6-S3", "001", "A new clause.")


@pytest.mark.parametrize("line", ["- A clause without an id.", "## Heading", "- **X-1**: with a colon"])
def test_line_that_only_looks_like_a_requirement_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="no requirement"):
        list(parse("001", f"# Title\n\n{line}\n"))
