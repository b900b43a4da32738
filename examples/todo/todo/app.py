"""The application: pages to sign in and to see one's tasks, and a small JSON API for them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

from fastapi import Cookie, Depends, FastAPI, Form, HTTPException, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from todo.store import NameTaken, Store, Task, User

COOKIE = "todo_session"
PAGES = Path(__file__).parent / "pages"

Title = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
Name = Annotated[str, Form(min_length=1, max_length=50)]
Password = Annotated[str, Form(min_length=8, max_length=200)]
UserDeleted = Callable[[User], Awaitable[None]]


class NewTask(BaseModel):
    """A task to be made."""

    title: Title


class TaskChange(BaseModel):
    """What is to be different of a task."""

    title: Title | None = None
    done: bool | None = None


async def current_user(request: Request, todo_session: Annotated[str | None, Cookie()] = None) -> User:
    """Who is signed in; 401 where nobody is."""
    store: Store = request.app.state.store
    user = await run_in_threadpool(store.user_of, todo_session)
    if user is None:
        raise HTTPException(401, "Sign in first.")
    return user


SignedIn = Annotated[User, Depends(current_user)]


def create_todo(store: Store) -> FastAPI:
    """The application on a store. `app.state.when_deleted` are told of users who delete their account."""
    app = FastAPI(title="Todo")
    app.state.store = store
    app.state.when_deleted = list[UserDeleted]()
    app.state.chat = ""  # the address of the chat, where there is one
    _add_pages(app, store)
    _add_accounts(app, store)
    _add_tasks(app, store)
    return app


def _add_pages(app: FastAPI, store: Store) -> None:
    def home(todo_session: Annotated[str | None, Cookie()] = None) -> Response:
        return FileResponse(PAGES / ("sign-in.html" if store.user_of(todo_session) is None else "tasks.html"))

    def program() -> Response:
        return FileResponse(PAGES / "tasks.js", media_type="text/javascript")

    def style() -> Response:
        return FileResponse(PAGES / "style.css", media_type="text/css")

    app.get("/")(home)
    app.get("/tasks.js")(program)
    app.get("/style.css")(style)


def _add_accounts(app: FastAPI, store: Store) -> None:
    def register(name: Name, password: Password) -> Response:
        try:
            return _signed_in(store, store.register(name, password))
        except NameTaken:
            raise HTTPException(409, "This name is taken.") from None

    def sign_in(name: Name, password: Password) -> Response:
        user = store.authenticate(name, password)
        if user is None:
            raise HTTPException(401, "Name or password are wrong.")
        return _signed_in(store, user)

    def sign_out(todo_session: Annotated[str | None, Cookie()] = None) -> Response:
        store.close_session(todo_session or "")
        return _goodbye()

    def me(user: SignedIn) -> dict[str, str]:
        return {"name": user.name, "chat": app.state.chat}

    async def delete_account(user: SignedIn) -> Response:
        await run_in_threadpool(store.delete_user, user.id)
        for tell in app.state.when_deleted:
            await tell(user)
        return _goodbye()

    app.post("/register")(register)
    app.post("/sign-in")(sign_in)
    app.post("/sign-out")(sign_out)
    app.get("/me")(me)
    app.post("/delete-account")(delete_account)


def _add_tasks(app: FastAPI, store: Store) -> None:
    def tasks(user: SignedIn) -> list[Task]:
        return store.tasks(user.id)

    def add(user: SignedIn, new: NewTask) -> Task:
        return store.add_task(user.id, new.title)

    def change(user: SignedIn, task_id: int, change: TaskChange) -> Task:
        task = store.change_task(user.id, task_id, change.title, change.done)
        if task is None:
            raise HTTPException(404, "There is no such task.")
        return task

    def delete(user: SignedIn, task_id: int) -> None:
        if not store.delete_task(user.id, task_id):
            raise HTTPException(404, "There is no such task.")

    app.get("/tasks")(tasks)
    app.post("/tasks", status_code=201)(add)
    app.patch("/tasks/{task_id}")(change)
    app.delete("/tasks/{task_id}", status_code=204)(delete)


def _signed_in(store: Store, user: User) -> Response:
    answer = RedirectResponse("/", 303)
    # Not sent along by pages of other sites, not readable by programs of ours.
    answer.set_cookie(COOKIE, store.open_session(user), httponly=True, samesite="lax")
    return answer


def _goodbye() -> Response:
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(COOKIE)
    return answer
