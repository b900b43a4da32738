"""The types that the server and the Python client share."""
