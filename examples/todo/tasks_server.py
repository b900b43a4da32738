"""An MCP server for the tasks of one user: `python tasks_server.py DATABASE`.

Threadkeep starts one for each user (`scope: "user"`) and says whose it is in THREADKEEP_USER_ID. The model
cannot choose the user: no tool takes one.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from todo.store import Store, Task

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]


def tasks_server(store: Store, user_id: int) -> MCPServer:
    """The server for one user."""
    server = MCPServer("tasks")

    @server.tool()
    def list_tasks() -> list[Task]:
        """List the user's tasks with their ids."""
        return store.tasks(user_id)

    @server.tool()
    def add_task(title: Title) -> Task:
        """Add a task for the user."""
        return store.add_task(user_id, title)

    @server.tool()
    def complete_task(task_id: int) -> Task:
        """Mark a task as done."""
        return _found(store.change_task(user_id, task_id, done=True))

    @server.tool()
    def update_task(task_id: int, title: Title) -> Task:
        """Give a task another title."""
        return _found(store.change_task(user_id, task_id, title=title))

    @server.tool()
    def delete_task(task_id: int) -> str:
        """Delete a task."""
        if not store.delete_task(user_id, task_id):
            raise ToolError("There is no such task.")
        return "Deleted."

    return server


def _found(task: Task | None) -> Task:
    if task is None:
        raise ToolError("There is no such task.")
    return task


if __name__ == "__main__":
    tasks_server(Store(Path(sys.argv[1])), int(os.environ["THREADKEEP_USER_ID"])).run()
