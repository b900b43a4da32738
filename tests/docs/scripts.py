"""What models say on several pages."""

from threadkeep.testing import Gate, Reply, Say, Wait

GRAVITY: dict[str, Reply] = {"gravity": [Say("Gravity pulls things together.")]}
STORY: dict[str, Reply] = {"long story": [Say("Once upon a time"), Wait(Gate())]}
