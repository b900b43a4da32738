"""What models write: Markdown."""
