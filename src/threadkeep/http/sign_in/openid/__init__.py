"""OpenID Connect: what we say to sign-in providers, and what we believe of their answers."""
