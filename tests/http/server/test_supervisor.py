"""The parent of processes, with processes that are ready only after they have been told to end."""

import subprocess
import sys
import textwrap

PARENT = """
    import asyncio, sys
    from threadkeep.http.server.supervisor import Supervisor, ServingProcess

    def work(process: ServingProcess) -> int:
        async def wait() -> None:
            ended = asyncio.Event()
            process.obey(drain=ended.set, retire=ended.set, end=ended.set)
            print("started", process.number, flush=True)
            await ended.wait()
            process.report_ready()

        asyncio.run(wait())
        return 0

    sys.exit(Supervisor(2, work, lambda: print("serving", flush=True)).run())
"""


def test_signal_before_the_first_worker_is_ready_ends_the_server():
    command = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "started 1\n"
        parent.terminate()
        assert parent.stdout.read() == ""
        assert parent.wait(30) == 0
