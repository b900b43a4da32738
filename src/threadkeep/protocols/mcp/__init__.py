"""`/mcp`: Threadkeep as a server for MCP clients, such as coding assistants.

- `routes.py`: the route and the shape of its errors. It loads the rest at the first request, because the MCP
  SDK takes longer to load than all of a small server's start.
- `response.py`: one request and its response, by the SDK's transport. Both protocol eras, no sessions.
- `server.py`: what the SDK calls: tools and resources.
- `tools.py`, `turns.py`, `resources.py`: what they do, without the SDK.
- `asking.py`: a turn's requests to its user as questions that the client asks (2026-07-28).
- `sign_in.py`: tells clients where to sign in.
"""
