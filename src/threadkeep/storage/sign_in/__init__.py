"""Who signs in with a browser, in the database."""
