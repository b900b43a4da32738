"""Makes a failing story short: leaves out what it fails without."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.proof.story import Story, Trim

Fails = Callable[[Story], bool]


def shrunk(story: Story, fails: Fails, *, most_runs: int = 200) -> Story:
    """A story that fails, too, with as few acts and faults as that takes: first users, then one at a time."""
    runs, is_shorter = 0, True
    while is_shorter and runs < most_runs:
        is_shorter = False
        for shorter in _shorter(story):
            runs += 1
            if fails(shorter):
                story, is_shorter = shorter, True
                break
    return story


def _shorter(story: Story) -> Iterator[Story]:
    """Stories with less, those with much less first."""
    users = sorted({it.user for it in story.acts if not isinstance(it, Trim)})
    if len(users) > 1:
        for user in users:
            yield replace(story, acts=[it for it in story.acts if getattr(it, "user", "") != user])
    for part in (*story.faults, *story.acts):
        yield story.without(part)
    if story.nodes > 2:
        yield replace(story, nodes=story.nodes - 1)
    for calm in ({"loses_signals": 0.0}, {"model_fails": 0.0}, {"loses_requests": 0.0}, {"drift_s": 0.0}):
        if any(getattr(story, name) != value for name, value in calm.items()):
            yield replace(story, **calm)  # type: ignore[arg-type]
