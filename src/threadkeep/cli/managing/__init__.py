"""Commands that manage what a server has, over its API: agents, MCP servers, models, keys."""
