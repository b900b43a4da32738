"""The parent of workers, with workers that do nothing but start slowly and wait."""

import subprocess
import sys
import textwrap

PARENT = """
    import asyncio, sys
    from threadkeep.http.server.supervisor import Supervisor, Worker

    def work(worker: Worker) -> int:
        async def wait() -> None:
            ended = asyncio.Event()
            worker.obey(drain=ended.set, retire=ended.set, end=ended.set)
            print("started", worker.number, flush=True)
            sys.stdin.readline()  # until the test has sent its signal
            worker.report_ready()
            await ended.wait()

        asyncio.run(wait())
        return 0

    sys.exit(Supervisor(2, work, lambda: print("serving", flush=True)).run())
"""


def test_signal_before_the_first_worker_is_ready_ends_the_server():
    command = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin and parent.stdout
        assert parent.stdout.readline() == "started 1\n"
        parent.terminate()
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.read() == ""
        assert parent.wait(30) == 0
