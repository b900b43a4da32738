"""`threadkeep model`: the models that can be chosen, and the accounts with their providers."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

from threadkeep.cli.managing.actions import add_action, add_json, print_json, print_table, secrets_from
from threadkeep.cli.target import find_agent
from threadkeep.cli.terminal import clean
from threadkeep.client.client import Client
from threadkeep.domain.model import GatewayKind
from threadkeep.wire.gateways import GatewayTestView, GatewayView
from threadkeep.wire.models import ModelView

_AMOUNTS = ("input", "output")


def add_model(command: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    actions = command.add_subparsers(required=True, metavar="ACTION")
    listing = add_action(actions, "list", _list, "list the models that you can choose, the default one first")
    listing.add_argument("--agent", help="those that this agent offers for a message")
    add_json(listing)
    gateways = add_action(
        actions, "gateways", _gateways, "list the accounts with providers and whether they work; for admins"
    )
    add_json(gateways)
    connect = add_action(
        actions, "connect", _connect, "connect an account with a provider, and test it; for admins"
    )
    connect.add_argument("name", help="a short name; its models have the ids NAME/MODEL")
    connect.add_argument(
        "--kind", required=True, choices=[kind.value for kind in GatewayKind], help="the API that it speaks"
    )
    connect.add_argument("--address", metavar="URL", help="the API's address (the provider's own)")
    connect.add_argument(
        "--key-env", metavar="VARIABLE", help="the variable that has the provider's key here; asked if unset"
    )
    connect.add_argument(
        "--model", action="append", default=[], help="a model that can be chosen; repeat for several (any)"
    )
    connect.add_argument(
        "--price",
        action="append",
        default=[],
        type=_price,
        metavar="MODEL=INPUT,OUTPUT",
        help="what a million tokens of a model cost, for example large=2.50,10; if Threadkeep doesn't know "
        "the price, budgets refuse the model",
    )
    connect.add_argument("--default-model", help="for agents that name no model (the first one)")
    add_json(connect)
    for name, work, purpose in (
        ("test", _test, "connect to an account and list its models; for admins"),
        ("disconnect", _disconnect, "remove an account; for admins"),
    ):
        action = add_action(actions, name, work, purpose)
        action.add_argument("name", help="the account's name, the first part of its models' ids")
        if name == "test":
            add_json(action)


async def _list(client: Client, given: argparse.Namespace) -> None:
    agent = await find_agent(client, given.agent) if given.agent else None
    models = await client.models(agent and agent.id)
    if given.json:
        print_json(models)
        return
    print_table(("MODEL", "CONTEXT", "TOOLS", "IMAGES", "INPUT", "OUTPUT", "DEFAULT"), map(_row, models))


def _row(model: ModelView) -> tuple[str, ...]:
    prices = (model.price.input, model.price.output) if model.price else ("", "")
    can = ["yes" if it else "" for it in (model.supports_tools, model.takes_images)]
    return model.id, f"{model.context_tokens:,}", *can, *prices, "yes" if model.default else ""


async def _gateways(client: Client, given: argparse.Namespace) -> None:
    found = await client.gateways()
    if given.json:
        print_json(found)
        return
    print_table(("NAME", "KIND", "ADDRESS", "FROM", "STATUS", "MODELS", "ERROR"), map(_account, found))


def _account(gateway: GatewayView) -> Sequence[str]:
    models = ", ".join(it.name for it in gateway.models) or "any"
    error = "" if gateway.error is UNSET else gateway.error
    return gateway.name, gateway.kind, gateway.url or "", gateway.source, gateway.status, models, error


async def _connect(client: Client, given: argparse.Namespace) -> int:
    key = secrets_from([f"API key={given.key_env}"])["API key"] if given.key_env else None
    made = await client.create_gateway(
        given.name,
        given.kind,
        url=given.address,
        api_key=key,
        models=_priced(given.model, dict(given.price)),
        default_model=given.default_model,
    )
    print(f"Saved {made.name}.", file=sys.stderr)
    return _report(made.name, await client.test_gateway(made.name), given)


def _price(text: str) -> tuple[str, dict[str, str]]:
    """A model and its price. The server says what is wrong with amounts."""
    model, _, amounts = text.rpartition("=")
    price = amounts.split(",")
    if not model or len(price) != len(_AMOUNTS):
        raise argparse.ArgumentTypeError(f"{text!r} isn't of the form MODEL=INPUT,OUTPUT")
    return model, dict(zip(_AMOUNTS, map(str.strip, price), strict=True))


def _priced(models: Sequence[str], prices: Mapping[str, Mapping[str, str]]) -> list[str | dict[str, Any]]:
    """The models of the request; those with a price needn't be named twice."""
    named = dict.fromkeys((*models, *prices))
    return [{"name": it, "price": prices[it]} if it in prices else it for it in named]


async def _test(client: Client, given: argparse.Namespace) -> int:
    return _report(given.name, await client.test_gateway(given.name), given)


def _report(name: str, found: GatewayTestView, given: argparse.Namespace) -> int:
    """Prints what a test found; 0 if the account works."""
    if given.json:
        print_json(found)
    elif found.ok:
        print("\n".join(clean(f"{name}/{model}") for model in found.models) or f"{name} works.")
    else:
        print(f"{name}: {clean(found.error or '')}", file=sys.stderr)
    return 0 if found.ok else 1


async def _disconnect(client: Client, given: argparse.Namespace) -> None:
    await client.delete_gateway(given.name)
    print(f"Disconnected {given.name}. Agents that name its models need others.")
