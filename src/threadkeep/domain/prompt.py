"""The files that make up a system prompt."""

from threadkeep.domain.choice import Choice


class PromptComponent(Choice):
    """The components by their file names, in the order of the prompt."""

    IDENTITY = "IDENTITY.md"
    ROLE = "ROLE.md"
    RULES = "RULES.md"
    TOOLS = "TOOLS.md"
    USER = "USER.md"
    MEMORY = "MEMORY.md"
