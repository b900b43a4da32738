from collections import Counter

from tests.conformance.requirements import DOCUMENTS, parse, read_requirements


def test_every_requirement_of_the_documents_is_found() -> None:
    assert Counter((requirement.seed, requirement.kind) for requirement in read_requirements()) == {
        ("000", "heading"): 6,
        ("000", "scenario"): 16,
        ("001", "heading"): 6,
        ("001", "scenario"): 12,
        ("002", "heading"): 15 + 2,
        ("002", "scenario"): 23,
        ("002", "endpoint"): 7,
        ("002", "error code"): 10,
        ("003", "heading"): 4 + 3,
        ("003", "scenario"): 11,
        ("003", "edge case"): 5,
        ("003", "functional requirement"): 15,
        ("003", "success criterion"): 8,
        ("004", "heading"): 4 + 1 + 4,
        ("004", "acceptance criterion"): 11,
        ("004", "quality"): 7,
    }


def test_requirements_carry_the_ids_and_titles_of_the_documents() -> None:
    titles = {requirement.id: requirement.title for requirement in read_requirements()}
    expected = {
        "REQ-CONV-006-S1": "SSE chunk streaming",
        "001-R6-S2": "解引用失败降级",
        "CONV-008-S3": "配置用户自定义 MCP",
        "CONV-008.1-S2": "无法覆盖系统级 MCP",
        "002-API-1": "POST /api/domains/:id/conversations",
        "002-API-7": "WS /ws",
        "002-ERR-CONVERSATION_NOT_FOUND": "对话不存在",
        "003-US4.1": "Given a conversation with 5 messages, When the conversation is deleted, "
        "Then all 5 messages are also deleted",
        "003-EC1": "What happens when a message has empty content? "
        "The system should reject empty messages — content is required.",
        "FR-004": "Each conversation MUST track when it was created and when it was last updated",
        "SC-002": "Conversation lookup by user completes within 100 milliseconds for any single user",
        "004-R1.3": "删除会话",
        "004-NFR-performance-1": "Query Latency: 会话列表和详情查询 P99 < 100ms。",
        "004-NFR-modularity-2": "Repository Pattern: 使用仓储模式隔离数据库实现。",
    }
    assert {key: titles.get(key) for key in expected} == expected


def test_added_scenario_appears_by_itself() -> None:
    text = (DOCUMENTS / "001-conversation.md").read_text("utf-8") + "\n#### Scenario: 新的场景\n"
    added = list(parse("001", text))[-1]
    assert (added.id, added.title, added.parent) == ("001-R6-S3", "新的场景", "001-R6")


def test_text_in_code_is_no_requirement() -> None:
    assert list(parse("001", "```\n### Requirement: 示例\n```\n")) == []
