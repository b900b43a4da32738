"""Runs the application with its chat: `python -m todo [--port 8700] [--data .todo]`."""

import argparse
from pathlib import Path

import uvicorn

from threadkeep import Settings
from todo.app import create_todo
from todo.chat import add_chat
from todo.store import Store

parser = argparse.ArgumentParser(prog="todo")
parser.add_argument("--port", type=int, default=8700)
parser.add_argument("--data", type=Path, default=Path(".todo"))
arguments = parser.parse_args()

store = Store(arguments.data / "todo.db")
app = create_todo(store)
# The file of the chat stands beside the application's own; the model is whatever the environment says.
# The only program that it runs is our own, which writes the application's file: it needs no sandbox.
settings = Settings.load(data=arguments.data / "chat", mcp_allowed_commands="python", mcp_sandbox="off")
add_chat(app, store, settings)
uvicorn.run(app, port=arguments.port)
