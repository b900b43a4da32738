"""Documents in the database: their files, their chunks, and what finds them."""
