"""What every request goes through.

`routing.py` declares routes and turns a request into a call of its handler. It signs the user in, reads the
body (`bodies.py`; files: `uploads.py`), decodes it and the query string (`wire/decoding.py`), calls the
handler, and sends what that returns: a view, a file or a stream (`stream.py`). `errors.py` turns what the
handler raises into a response. Handlers use the other files.
"""
