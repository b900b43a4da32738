"""The stores, one file each; the first of each database is its floor, which costs least by construction."""

STORES = (
    "sqlite", "sqlite_once", "threadkeep", "openai_agents", "openai_agents_sqlalchemy", "langchain",
    "llamaindex", "agno", "adk", "langgraph", "postgres", "threadkeep_postgres",
)  # fmt: skip
