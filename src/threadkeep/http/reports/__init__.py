"""Reports of a conversation: Markdown, HTML and JSON."""
