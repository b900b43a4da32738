"""The reference page at `/docs`, generated from the OpenAPI document."""
