"""A memory: something that an agent remembers about a user across conversations."""

from dataclasses import dataclass

from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import AgentId, MemoryId
from threadkeep.domain.text import check_line, check_storable, is_blank

MOST_CHARACTERS = 4_000
MOST_TAGS = 20


@dataclass(frozen=True, slots=True)
class Memory:
    """A remembered text, with its keywords."""

    id: MemoryId
    content: str
    tags: tuple[str, ...]
    created_at: int

    def __post_init__(self) -> None:
        if is_blank(self.content):
            raise InvalidRequest("`content` can't be blank.", param="content")
        if len(self.content) > MOST_CHARACTERS:
            raise InvalidRequest(f"`content` can have at most {MOST_CHARACTERS} characters.", param="content")
        check_storable(self.content, "content")
        if len(self.tags) > MOST_TAGS:
            raise InvalidRequest(f"You can send at most {MOST_TAGS} `tags`.", param="tags")
        for tag in self.tags:
            check_line(tag, "tags", most=100)


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """A memory, and the agent that has it."""

    agent_id: AgentId
    memory: Memory
