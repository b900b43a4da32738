"""What users share of their conversations, read-only, with whoever has the link."""
