"""The route table by what the routes are about: one row for each route, in the order of the reference."""
