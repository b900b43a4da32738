"""The HTTP API: Starlette and msgspec, one table of routes."""
