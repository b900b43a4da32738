"""OpenAI's API at `/v1`: chat completions without a memory, and responses that belong to conversations.

A response is a turn, or a part of one: a turn that waits for its user ends its response there, and the next
request, which brings the decision, begins another.

- `routes.py`: the table; `responses.py`, `completions.py`, `conversations.py`, `conversation_items.py`,
  `files.py`, `models.py` handle its requests, and `errors.py` shapes what is refused.
- What a request means: `decode.py`, `completions_decode.py`; `asking.py` finds or begins its turn.
- What a turn looks like: `items.py` makes its items, for streams, responses and lists alike; `encode.py` and
  `completions_encode.py` stream them, `reading.py` reads them later, `input_items.py` shows what was given.
- `unstored.py`: responses with `store: false`. `added_items.py`: items that a client adds without a turn.
- `frames.py`: the types of the wire; `ids.py`: our ids as OpenAI's.
"""
