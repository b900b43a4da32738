"""Tools over MCP: servers of others, run and watched; and servers of our own."""
