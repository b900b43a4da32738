"""One session with one server: its transport, its messages, its tools and its calls."""
