"""Which models an agent's owner and its users can choose."""

from dataclasses import replace

import pytest

from tests.gateways.test_registry import config_of, registry_of
from tests.making import make_agent
from threadkeep.domain.agent import Agent, AgentDraft, AgentSettings
from threadkeep.domain.errors import InvalidRequest, ModelNotAllowed, ModelNotFound
from threadkeep.services.model_choice import ModelChoice

MODELS = registry_of(config_of("default", default="main"), config_of("work", "fast", "slow"))


def agent_of(model: str | None = None, **settings: object) -> Agent:
    return replace(make_agent(), model=model, settings=AgentSettings(**settings))  # type: ignore[arg-type]


def offered(choice: ModelChoice, agent: Agent) -> list[str]:
    return [it.id for it in choice.offered(agent)]


def test_user_chooses_among_what_the_agent_offers():
    choice = ModelChoice(MODELS)
    agent = agent_of(models=("work/fast", "work/gone"))
    assert choice.chosen(agent, None).id == "default/main"
    assert choice.chosen(agent, "fast").id == "work/fast"
    assert choice.chosen(agent, "main").id == "default/main"
    with pytest.raises(ModelNotAllowed, match="doesn't offer") as refused:
        choice.chosen(agent, "work/slow")
    assert refused.value.details == {"models": ["default/main", "work/fast"]}
    with pytest.raises(ModelNotFound):
        choice.chosen(agent, "work/nothing")


def test_user_can_choose_another_model_if_the_agents_own_is_gone():
    choice = ModelChoice(registry_of(config_of("work", "fast", "slow")))
    agent = agent_of("gone/model", models=("work/fast",))
    with pytest.raises(ModelNotFound):
        choice.chosen(agent, None)
    assert choice.chosen(agent, "work/fast").id == "work/fast"
    assert offered(choice, agent) == ["work/fast"]
    with pytest.raises(ModelNotAllowed, match="doesn't offer"):
        choice.chosen(agent, "work/slow")


@pytest.mark.parametrize("model", ["", " ", "x" * 201])
def test_blank_or_overlong_model_is_refused_even_where_any_can_be_chosen(model: str):
    choice = ModelChoice(registry_of(config_of("default", default="main")))
    with pytest.raises(InvalidRequest) as refused:
        choice.chosen(agent_of(models=("*",)), model)
    assert refused.value.param == "model"


def test_agent_that_offers_nothing_answers_with_its_own_model():
    choice = ModelChoice(MODELS)
    assert offered(choice, agent_of("work/slow")) == ["work/slow"]
    assert offered(choice, agent_of("work/slow", models=("*",))) == ["work/slow", "default/main", "work/fast"]
    with pytest.raises(ModelNotAllowed):
        choice.chosen(agent_of("work/slow"), "fast")


@pytest.mark.parametrize("allowed", ["fast", "work/fast"])
def test_operator_allows_models_by_id_or_name_and_always_the_default(allowed: str):
    choice = ModelChoice(MODELS, [allowed])
    assert [it.id for it in choice.listed()] == ["default/main", "work/fast"]
    assert offered(choice, agent_of(models=("*",))) == ["default/main", "work/fast"]
    assert [
        it.id for it in choice.fallbacks(agent_of(fallback_models=("slow", "fast")), MODELS.get(None))
    ] == ["work/fast"]
    for agent in (agent_of("work/slow"), agent_of("slow")):
        with pytest.raises(ModelNotAllowed, match="operator"):
            choice.own(agent)


@pytest.mark.parametrize("allowed", ["vendor/large", "default/vendor/large"])
def test_operator_names_models_with_a_slash_in_the_settings_as_the_provider_does(allowed: str):
    choice = ModelChoice(registry_of(config_of("default", default="vendor/main")), [allowed])
    assert choice.own(agent_of()).id == "default/vendor/main"
    for model in ("default/vendor/main", "default/vendor/large"):
        assert choice.own(agent_of(model)).id == choice.checked(AgentDraft("A", model=model)).model == model
    with pytest.raises(ModelNotAllowed, match="operator"):
        choice.own(agent_of("default/vendor/small"))


def test_models_of_an_agent_are_stored_by_their_ids():
    draft = AgentDraft(
        "A", model="fast", settings=AgentSettings(models=("*", "slow"), fallback_models=("main", "slow"))
    )
    checked = ModelChoice(MODELS).checked(draft)
    assert checked.model == "work/fast"
    assert checked.settings.models == ("*", "work/slow")
    assert checked.settings.fallback_models == ("default/main", "work/slow")


def test_what_cannot_be_chosen_is_refused_unless_it_was_chosen_before():
    choice = ModelChoice(MODELS, ["fast"])
    before = agent_of("work/old", models=("work/old",))
    draft = AgentDraft("A", model="work/old", settings=before.settings)
    assert choice.checked(draft, before).model == "work/old"
    for refused, error, param in (
        (replace(draft, model="work/nothing"), ModelNotFound, "model"),
        (replace(draft, model="work/slow"), ModelNotAllowed, "model"),
        (replace(draft, settings=AgentSettings(models=("slow",))), ModelNotAllowed, "settings.models"),
        (
            replace(draft, settings=AgentSettings(fallback_models=("no",))),
            ModelNotFound,
            "settings.fallbackModels",
        ),
    ):
        with pytest.raises(error) as caught:
            choice.checked(refused, before)
        assert caught.value.param == param


def test_any_model_is_no_fallback():
    with pytest.raises(InvalidRequest, match="fallbackModels"):
        AgentSettings(fallback_models=("*",))


def test_without_a_gateway_a_model_is_kept_as_it_was_written():
    assert ModelChoice(registry_of()).checked(AgentDraft("A", model="later")).model == "later"
