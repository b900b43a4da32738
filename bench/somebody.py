"""Somebody who uses their tool again and again, in a process of their own, so that nobody waits for them.

    python -m bench.somebody PORT

Reads from stdin: a conversation and what to say in it, with a tab between, begins; an empty line ends, and is
answered with one once the latest turn is over.
"""

import http.client
import json
import os
import select
import sys

EVERY_S = 0.25


class Talker:
    """Talks to a Threadkeep, one turn at a time, over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, conversation: str, content: str) -> None:
        """Sends a message and waits for the finished reply."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        path, body = f"/api/conversations/{conversation}/messages?wait=true", json.dumps({"content": content})
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse().read()
        if b'"COMPLETED"' not in answer:
            raise RuntimeError(f"the turn was not completed: {answer[:1000]!r}")

    def close(self) -> None:
        """Hangs up."""
        self._connection.close()


def main(port: int) -> None:
    """Until stdin ends."""
    os.nice(5)  # whoever is measured comes first
    talker = Talker(port)
    for line in iter(sys.stdin.readline, ""):
        conversation, _, content = line.rstrip("\n").partition("\t")
        while not select.select([sys.stdin], [], [], EVERY_S)[0]:
            talker.ask(conversation, content)
        sys.stdin.readline()
        print(flush=True)
    talker.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
