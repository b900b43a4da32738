"""Which gateway reaches a model."""

from collections.abc import Mapping, Sequence

import pytest

from tests.engine.in_memory import InMemoryGateway
from threadkeep.domain.errors import GatewayNotConfigured, ModelNotFound, SettingsError
from threadkeep.domain.model import GatewayConfig, GatewayKind, ListedModel, Model
from threadkeep.gateways.registry import ConfiguredGateway, GatewayRegistry
from threadkeep.ports.gateways import GatewayState

Listing = Mapping[str, tuple[str, ...]]


class NamedGateway(InMemoryGateway):
    """A gateway whose models carry its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.is_closed = False
        self.is_retired = False

    def describe(self, model: str) -> Model:
        return Model(gateway=self.name, name=model, context_tokens=1000)

    async def retire(self) -> None:
        self.is_retired = True

    async def close(self) -> None:
        self.is_closed = True


def connect(config: GatewayConfig) -> ConfiguredGateway:
    if config.url == "http://bad":
        raise SettingsError("This address can't be used.")
    first = config.models[0].name if config.models else "usual"
    return ConfiguredGateway(config, NamedGateway(config.name), config.default_model or first)


def config_of(name: str, *models: str, default: str | None = None, url: str | None = None) -> GatewayConfig:
    listed = tuple(ListedModel(name=it) for it in models)
    return GatewayConfig(name=name, kind=GatewayKind.OPENAI, models=listed, default_model=default, url=url)


def registry_of(*configs: GatewayConfig) -> GatewayRegistry:
    return GatewayRegistry(connect, configs, {"guide": NamedGateway("")})


DEMONSTRATION = GatewayConfig(name="default", kind=GatewayKind.LOCAL)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, "default/main"),
        ("guide", "guide"),
        ("default/anything", "default/anything"),
        ("work/fast", "work/fast"),
        ("work/vendor/large", "work/vendor/large"),
        ("fast", "work/fast"),
        ("both", "default/both"),
        ("unlisted", "default/unlisted"),
    ],
)
def test_model_is_reached_by_its_id_or_by_a_name_that_only_one_gateway_lists(wanted: str | None, found: str):
    registry = registry_of(
        config_of("default", "both", default="main"), config_of("work", "fast", "both", "vendor/large")
    )
    assert registry.get(wanted).id == found


@pytest.mark.parametrize(
    "others",
    [
        (config_of("default", default="main"),),
        (config_of("default", "main"),),
        (DEMONSTRATION,),
        (config_of("default", default="brief/fast"),),
        (config_of("default", "brief/fast", "main"),),
        (config_of("default", default="main"), config_of("router", "brief/fast")),
        (config_of("router", "brief/fast"),),
        (config_of("router", "brief/fast"), config_of("house", "brief/fast")),
        (config_of("router", "brief/fast"), config_of("default", default="brief/fast")),
    ],
    ids=lambda others: " ".join(f"{it.name}={','.join(connect(it).listed)}" for it in others),
)
async def test_conversation_for_a_removed_gateway_never_goes_to_another(others: Sequence[GatewayConfig]):
    registry = registry_of(*others)
    await registry.replace_added([config_of("brief", "fast")])
    for find in (registry.get, registry.choose):
        assert find("brief/fast").id == "brief/fast"
    await registry.replace_added([])
    for find in (registry.get, registry.choose):
        with pytest.raises(ModelNotFound, match="brief"):
            find("brief/fast")


@pytest.mark.parametrize("is_listed", [False, True])
def test_models_with_a_slash_are_reached_under_their_gateways_name(is_listed: bool):
    router = config_of("router", "vendor/large", *(("vendor/small",) if is_listed else ()))
    registry = registry_of(config_of("default", default="vendor/main"), router)
    assert registry.get(None).id == "default/vendor/main"
    assert registry.choose("default/vendor/main").id == "default/vendor/main"
    assert registry.choose("router/vendor/large").id == "router/vendor/large"
    assert registry.get("default/vendor/other").id == "default/vendor/other"


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("vendor/main", "default/vendor/main"),
        ("vendor/large", "default/vendor/large, router/vendor/large"),
        ("vendor/other", "default/vendor/other"),
        ("vendor/", "default/vendor/"),
    ],
)
def test_refused_name_with_a_slash_says_under_which_ids_other_gateways_could_have_it(wanted: str, ids: str):
    default = config_of("default", default="vendor/main")
    registry = registry_of(default, config_of("router", "vendor/large"))
    for find in (registry.get, registry.choose):
        with pytest.raises(ModelNotFound, match="No gateway 'vendor' has this model") as refused:
            find(wanted)
        assert refused.value.message.endswith(f": {ids}.")


async def test_model_of_a_gateway_that_cannot_be_used_says_why():
    registry = registry_of(config_of("default", "main"))
    await registry.replace_added([config_of("work", "fast", url="http://bad")])
    with pytest.raises(ModelNotFound, match="This address can't be used"):
        registry.get("work/fast")


def test_name_that_several_gateways_list_is_refused_with_their_ids():
    registry = registry_of(config_of("default"), config_of("a", "m"), config_of("b", "m"))
    with pytest.raises(ModelNotFound, match="a/m, b/m"):
        registry.get("m")


def test_once_a_gateway_lists_models_only_listed_ones_can_be_chosen():
    free = registry_of(config_of("default", default="main"), config_of("work"))
    assert free.choose("work/anything").id == "work/anything"
    registry = registry_of(config_of("default", default="main"), config_of("work", "fast"))
    assert [registry.choose(it).id for it in ("main", "fast", "guide")] == [
        "default/main",
        "work/fast",
        "guide",
    ]
    for unlisted in ("anything", "work/slow", "default/other"):
        with pytest.raises(ModelNotFound):
            registry.choose(unlisted)
    # What an agent already uses goes on.
    assert registry.get("default/other").id == "default/other"


def test_nearest_model_is_named_among_few_and_not_looked_for_among_many(monkeypatch: pytest.MonkeyPatch):
    few, many = (registry_of(config_of("a", *(f"large-{it}" for it in range(count)))) for count in (3, 500))
    with pytest.raises(ModelNotFound, match="Did you mean 'a/large-1'"):
        few.choose("a/large_1")
    monkeypatch.setattr(
        "difflib.get_close_matches", None
    )  # on the event loop, it would keep everybody waiting
    with pytest.raises(ModelNotFound, match="No gateway lists the model"):
        many.choose("a/large_1")


async def test_demonstration_model_replies_only_until_another_gateway_is_connected():
    registry = registry_of(DEMONSTRATION)
    assert registry.get(None).id == "default/usual"
    await registry.replace_added([config_of("work", "fast", "slow")])
    assert registry.get(None).id == "work/fast"
    assert [it.id for it in registry.listed()] == ["work/fast", "work/slow"]
    await registry.replace_added([])
    assert registry.get(None).id == "default/usual"


def test_without_a_gateway_there_is_no_model_but_the_guide():
    registry = registry_of()
    with pytest.raises(GatewayNotConfigured):
        registry.get(None)
    with pytest.raises(GatewayNotConfigured):
        registry.get("m")
    assert registry.get("guide").id == "guide"
    assert registry.listed() == ()


async def test_unchanged_gateway_keeps_its_connections_and_a_running_turn_ends_on_the_old_one():
    registry = registry_of(config_of("default"))
    await registry.replace_added([config_of("a", "m"), config_of("b", "m")])
    a, b = registry.get("a/m"), registry.get("b/m")
    await registry.replace_added(
        [
            config_of("a", "m"),
            config_of("b", "m", "n"),
            config_of("c", url="http://bad"),
            config_of("default"),
        ]
    )
    assert registry.get("a/m").gateway is a.gateway
    assert registry.get("b/m").gateway is not b.gateway
    failing = {name for name, it in registry.health().items() if it.state is GatewayState.FAILING}
    assert failing == {"c", "default"}
    assert isinstance(a.gateway, NamedGateway)
    assert isinstance(b.gateway, NamedGateway)
    assert not a.gateway.is_retired
    assert b.gateway.is_retired
    assert not b.gateway.is_closed  # a turn may run on it
    await registry.close()
    assert a.gateway.is_closed
