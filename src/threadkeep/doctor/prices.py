"""Whether every model has a price where there are budgets: without one, a budget refuses the model."""

from collections.abc import Iterator, Sequence

from threadkeep.bootstrap import connect, gateway_configs
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.domain.model import GatewayConfig, GatewayKind
from threadkeep.domain.money import parse_amount
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.inspection import Inspection

MOST_NAMED = 10


async def check_prices(settings: Settings, inspection: Inspection | None) -> list[Finding]:
    """Names the models that a budget refuses, and whose budget it is: everybody's, an agent's or a key's."""
    limited = [*_limited(settings, inspection)]
    if not limited:
        return []
    saved = [it.config for it in inspection.gateways] if inspection else []
    unpriced: list[str] = []
    for config in (*_of_settings(settings), *saved):
        unpriced += [f"{config.name}/{name}" for name in await _unpriced(settings, config)]
    if not unpriced:
        return [Finding("budgets", "ok", "Every model has a price.")]
    price = (
        "Set the price on the page of models, with `threadkeep model connect --price`, or in "
        "[gateways.NAME] of the settings file."
    )
    models = _named(unpriced)
    return [
        Finding(
            "budgets", "problem", f"{whose} can't use a model without a price: {models}.", f"{price} {way}"
        )
        for whose, way in limited
    ]


def _limited(settings: Settings, inspection: Inspection | None) -> Iterator[tuple[str, str]]:
    """Who has a budget, and how to be without it."""
    if any(parse_amount(it) for it in (settings.user_budget_day, settings.user_budget_month)):
        without = f"Or unset {PREFIX}USER_BUDGET_DAY and {PREFIX}USER_BUDGET_MONTH."
        yield "Users have a budget, so that nobody", without
    if inspection is None:
        return
    agents = [it.name for it in inspection.agents if parse_amount(it.settings.budget_month)]
    if agents:
        without = "Or remove the budget: threadkeep agent change NAME --set budgetMonth=0."
        yield f"Agents have a budget ({_named(agents)}), so that they", without
    keys = [f"{it.name} of {it.user_id}" for it in inspection.keys_with_budgets]
    if keys:
        yield f"API keys have a budget ({_named(keys)}), so that they", "Or make keys without one."


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (" and others" if len(names) > MOST_NAMED else "")


def _of_settings(settings: Settings) -> Iterator[GatewayConfig]:
    try:
        yield from gateway_configs(settings)
    except SettingsError:  # a key is missing, which the check of the models says
        return


async def _unpriced(settings: Settings, config: GatewayConfig) -> list[str]:
    """Its models without a price: those that it lists, and the one for agents that name none."""
    if config.kind is GatewayKind.LOCAL:
        return []  # costs nothing
    try:
        opened = connect(settings, config)
    except ThreadkeepError:  # its key or its address is wrong, which the check of the models says
        return []
    try:
        return [name for name in opened.listed if opened.reach(name).model.price is None]
    finally:
        await opened.gateway.close()
