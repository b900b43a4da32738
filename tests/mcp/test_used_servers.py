"""A turn is told that a program was restarted where it was, and only there."""

from threadkeep.domain.ids import AgentId, ConversationId, UserId
from threadkeep.domain.mcp import StdioServer
from threadkeep.mcp.processes.programs import ServerKey
from threadkeep.mcp.used_servers import UsedHere

SERVER = StdioServer(command="notes")
KEY = ServerKey.of(AgentId("agent"), "notes", SERVER, UserId("user"), ConversationId("conversation"))


def test_turn_that_pauses_and_goes_on_here_finds_the_same_program():
    here = UsedHere()
    assert not here.of("reply", ()).was_restarted(KEY, SERVER, 1)
    assert not here.of("reply", {"notes"}).was_restarted(KEY, SERVER, 1)
    assert here.of("reply", {"notes"}).was_restarted(KEY, SERVER, 2)


def test_turn_that_goes_on_elsewhere_is_told_once_of_another_program():
    used = UsedHere().of("reply", {"notes"})
    assert [used.was_restarted(KEY, SERVER, 1) for _ in range(2)] == [True, False]


def test_node_remembers_only_its_latest_turns():
    here = UsedHere(most=1)
    here.of("first", ()).was_restarted(KEY, SERVER, 1)
    here.of("second", ())
    assert here.of("first", {"notes"}).was_restarted(KEY, SERVER, 1)
