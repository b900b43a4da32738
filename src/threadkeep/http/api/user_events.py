"""Changes to the user's data, over HTTP."""

from functools import partial

import msgspec

from threadkeep.handling.routing import RequestContext
from threadkeep.handling.stream import EventStream, StreamEnd
from threadkeep.runtime.user_events import UserEventWithId
from threadkeep.services.reach import concerns
from threadkeep.sse import frame
from threadkeep.wire.user_events import user_event_view

_to_json = msgspec.json.Encoder().encode


class _Frames:
    """Each event is a frame with its own id."""

    def encode_chunk(self, entry: UserEventWithId) -> bytes:
        view = user_event_view(*entry)
        return frame(_to_json(view), event=view.type, id=view.id)

    def end(self, how: StreamEnd) -> bytes:
        return b""


async def get_my_events(request: RequestContext) -> EventStream:
    """Follow changes to your conversations, turns, approvals and briefings, without message contents.

    The first event is `reset`; it also follows whenever events may be missing: reload your lists then. With
    `Last-Event-ID`, you get the events you missed instead, as long as this node still has them. The stream
    ends now and then; open it again.
    """
    last_id = request.http.headers.get("last-event-id")
    is_limited = request.user.agents is not None
    within_reach = partial(concerns, request.services.store, request.user) if is_limited else None
    events = request.services.user_events.read(request.user.id, last_id, within_reach)
    return EventStream(events, _Frames(), {})
