"""Errors and headers that routes of several tables have in common."""

from threadkeep.domain.errors import AgentNotFound, ConversationNotFound

AGENT = (AgentNotFound,)
CONVERSATION = (ConversationNotFound,)
CONVERSATION_LOCATION = {"Location": "Where the new conversation can be read."}
