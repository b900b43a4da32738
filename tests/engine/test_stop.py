"""Stopping a turn from outside."""

import asyncio

import pytest

from threadkeep.engine.stop import Stop, Stopped


async def test_stopping_twice_in_one_moment_stops_once_and_the_first_reason_counts():
    stop = Stop()
    guarded = asyncio.create_task(stop.guard(asyncio.Event().wait))
    await asyncio.sleep(0)
    stop.request("abort")
    await asyncio.sleep(0)  # the first request is taking effect
    stop.request("interrupt")
    stop.request("abort")
    with pytest.raises(Stopped) as stopped:
        await guarded
    assert stopped.value.reason == "abort"
