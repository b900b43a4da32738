"""The servers, one file each; the first is the floor, which costs least by construction."""

SERVERS = ("bare", "threadkeep", "handwritten", "agno", "chainlit", "langgraph", "adk")
