"""What models say on several pages."""

from threadkeep.testing import Gate, Reply, Say, UseTool, Wait

GRAVITY: dict[str, Reply] = {"gravity": [Say("Gravity pulls things together.")]}
STORY: dict[str, Reply] = {"long story": [Say("Once upon a time"), Wait(Gate())]}
TOKYO: dict[str, Reply] = {
    "How late": [UseTool("time__get_current_time", {"timezone": "Asia/Tokyo"})],
    "Asia/Tokyo": [Say("It is late in Tokyo.")],
}
ROOM: dict[str, Reply] = {
    "Book a room": [UseTool("ask_user", {"question": "Which room?", "choices": ["Blue", "Green"]})],
    "Blue": [Say("The blue room is yours.")],
}
PAINT: dict[str, Reply] = {
    "Paint the page": [UseTool("set_color", {"color": "red"})],
    "white": [Say("The page is red now.")],
    "painted": [Say("The page is red now.")],
}
