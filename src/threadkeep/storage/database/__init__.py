"""The two databases, and copies of them."""
