"""The process that serves."""

import subprocess
import sys
from pathlib import Path

from tests.serving import environment

# Ends itself as soon as it serves, and tells how much the collector of garbage passes over by then.
PROGRAM = """
import gc, os, signal, sys
from pathlib import Path
from threadkeep import Settings, create_app
from threadkeep.http.server.connection import ConnectionLimits
from threadkeep.http.server.server import listen, serve

def ready():
    print(gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)

with listen("127.0.0.1", 0) as listener:
    app = create_app(Settings.load({}, data=Path("data")))
    serve(app, listener, when_ready=ready, grace_s=0, limits=ConnectionLimits())
"""


def test_full_collections_of_garbage_pass_over_what_was_loaded_at_the_start(tmp_path: Path):
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment({}), capture_output=True, text=True, check=True
    )
    assert int(ended.stdout) > 10_000
