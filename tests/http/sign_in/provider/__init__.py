"""A real sign-in provider: Django OAuth Toolkit in a process of its own, behind a proxy that can lie."""
