"""The settings that docs/sign-in.md shows are accepted, and what it quotes is what is printed."""

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Block, blocks
from threadkeep import Settings
from threadkeep.domain.errors import SettingsError

PAGE = DOCS / "sign-in.md"
EXAMPLES = [block for block in blocks(PAGE) if block.language == "toml"]
SECRETS = {f"{name}_SECRET": "s" for name in ("WORK", "GOOGLE", "KEYCLOAK", "ENTRA", "AUTHENTIK")}


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda it: it.place)
def test_example_of_a_provider_is_accepted(block: Block, tmp_path: Path):
    file = tmp_path / "threadkeep.toml"
    file.write_text(block.code)
    settings = Settings.load(SECRETS, file)
    ((name, table),) = settings.sign_in.items()
    assert table.secret(name) == "s"
    assert settings.sign_in_rules.ways[0].url == f"https://chat.example/oauth/sign-in/{name}/start"
    with pytest.raises(SettingsError, match="needs its client secret in"):
        Settings.load({}, file).sign_in[name].secret(name)


def test_every_field_of_a_provider_is_described():
    page = PAGE.read_text()
    (table,) = Settings.load({}, public_url="https://x.example", sign_in={"a": _SMALLEST}).sign_in.values()
    assert [it for it in table.__struct_fields__ if f"`{it}`" not in page] == []


_SMALLEST = {"issuer": "https://id.example", "client_id": "x", "anyone": True}
