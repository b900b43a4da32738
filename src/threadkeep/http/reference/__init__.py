"""The reference page at `/docs`, made from the OpenAPI document."""
