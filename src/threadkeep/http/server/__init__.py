"""The server process: connections, sockets, shutdown."""
