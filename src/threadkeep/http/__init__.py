"""The HTTP face: Starlette and msgspec, one table of routes."""
