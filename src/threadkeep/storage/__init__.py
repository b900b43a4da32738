"""Where everything is kept: one set of SQL, two databases."""
