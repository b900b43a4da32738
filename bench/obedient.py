"""A model that uses the tool which the last message names. It prints its address, and runs until ended."""

import threading

from tests.mcp.turning import obey

from threadkeep.testing import ScriptedModel

if __name__ == "__main__":
    with ScriptedModel(otherwise=obey, records=False) as model:
        print(model.url, flush=True)
        threading.Event().wait()
