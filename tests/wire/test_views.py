"""Views show what they promise to show."""

from dataclasses import fields

from threadkeep.domain.agent import AgentSettings
from threadkeep.wire.views import AgentSettingsView


def test_agent_shows_every_setting():
    assert AgentSettingsView.__struct_fields__ == tuple(setting.name for setting in fields(AgentSettings))
