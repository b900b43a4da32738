"""Whether every model has a price where there are budgets: without one, a budget refuses the model."""

from collections.abc import Iterator

from threadkeep.bootstrap import connect, gateway_configs
from threadkeep.doctor.finding import Finding
from threadkeep.domain.errors import SettingsError, ThreadkeepError
from threadkeep.domain.model import GatewayConfig, GatewayKind
from threadkeep.domain.money import parse_amount
from threadkeep.settings import PREFIX, Settings
from threadkeep.storage.inspection import Inspection

MOST_NAMED = 10


async def check_prices(settings: Settings, inspection: Inspection | None) -> list[Finding]:
    """Names the models that users with a budget can't use."""
    if not any(parse_amount(it) for it in (settings.user_budget_day, settings.user_budget_month)):
        return []
    saved = [it.config for it in inspection.gateways] if inspection else []
    unpriced: list[str] = []
    for config in (*_of_settings(settings), *saved):
        unpriced += [f"{config.name}/{name}" for name in await _unpriced(settings, config)]
    if not unpriced:
        return [Finding("budgets", "ok", "Every model has a price.")]
    named = ", ".join(unpriced[:MOST_NAMED]) + (" and others" if len(unpriced) > MOST_NAMED else "")
    return [
        Finding(
            "budgets",
            "problem",
            f"Users have a budget, so that nobody can use a model without a price: {named}.",
            "Set the price on the page of models, with `threadkeep model connect --price`, or in "
            f"[gateways.NAME] of the settings file. Or unset {PREFIX}USER_BUDGET_DAY and "
            f"{PREFIX}USER_BUDGET_MONTH.",
        )
    ]


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
