"""The files of which a system prompt is made."""

from threadkeep.domain.choice import Choice


class PromptComponent(Choice):
    """The components by their file names, in the order in which they stand in the prompt."""

    IDENTITY = "IDENTITY.md"
    ROLE = "ROLE.md"
    RULES = "RULES.md"
    TOOLS = "TOOLS.md"
    USER = "USER.md"
    MEMORY = "MEMORY.md"
