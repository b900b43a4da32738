"""Tools over MCP: runs and watches others' servers, and offers our own."""
