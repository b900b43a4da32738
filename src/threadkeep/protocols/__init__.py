"""The protocols that clients speak, one folder each. Nothing here imports `http`, which mounts the routes.

To add a protocol, add a folder with these files; `agentx` is the model:

- `frames.py`: what clients receive, one frozen `msgspec.Struct` per frame. Fields are on the wire in the
  order in which they are declared; what may be missing is `UNSET`, what may be null is `None`.
- `encode.py`: a turn's events → frames, as a `Dialect` (`dialect.py`). The narrator (`narrator.py`) says what
  begins, grows and ends; the encoder names the frames of each narration. Pure: it remembers earlier events of
  the turn and nothing else, so that a replay gives the same bytes. Its `match` ends in `assert_never`, so
  that a new event type doesn't pass unnoticed.
- `decode.py`: what clients send, one Struct per request, decoded within limits (`wire/decoding.py`).
- `routes.py`: its routes, which call services and send frames. They are given the services and the sign-in
  (`ports/sign_in.py`); `http/app.py` mounts them.

A dialect listed in `dialects.py` is also one of `?dialect=` on our own routes. A path outside `/api/` must be
added to what `http/edge.py` protects from other sites' pages. Tests compare what every
dialect sends with a recorded turn (`tests/protocols/recorded.py`), and every protocol with the bytes in
`tests/corpus`.
"""
