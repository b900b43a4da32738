"""Ways to a model: one file a provider's wire."""
