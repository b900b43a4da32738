"""Connects to a gateway to see whether it works, before or after it is saved."""

import asyncio
from collections.abc import Sequence

from threadkeep.domain.errors import InvalidRequest, SettingsError, ThreadkeepError
from threadkeep.domain.model import GatewayConfig
from threadkeep.gateways.addresses import AddressNotAllowed, check_host
from threadkeep.gateways.endpoint import Endpoint
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.gateways.refusals import Refused
from threadkeep.gateways.registry import ConfiguredGateway, Connect
from threadkeep.networks import Network
from threadkeep.ports.gateway import GatewayError, ModelMessage, ModelRequest, Retrying, TextBlock
from threadkeep.ports.gateways import GatewayTest
from threadkeep.ports.models import ConnectedModel

TEST_S = 30.0


class ProviderTester:
    """Connects to a gateway that may not be saved yet."""

    def __init__(self, connect: Connect, denied: Sequence[Network]) -> None:
        self._connect = connect
        self._denied = denied

    async def check(self, config: GatewayConfig) -> None:
        """Raises InvalidRequest for an address that admins may not name, or a key that no header carries."""
        key = config.api_key.reveal() if config.api_key else ""
        endpoint = Endpoint(url=config.url or "https://provider.invalid", api_key=key)
        try:
            address = endpoint.address
        except SettingsError as exc:
            raise InvalidRequest(exc.message, param="url") from exc
        try:
            _ = endpoint.key
        except SettingsError as exc:
            raise InvalidRequest(exc.message, param="apiKey") from exc
        if config.url:
            try:
                await check_host(address.host, address.port or 443, self._denied)
            except AddressNotAllowed as exc:
                raise InvalidRequest(f"This address isn't allowed: {exc}", param="url") from exc

    async def test(self, config: GatewayConfig) -> GatewayTest:
        """Lists the models, and asks one that the configuration names the smallest possible question."""
        try:
            opened = self._connect(config)
        except ThreadkeepError as exc:
            return GatewayTest(error=exc.message)
        try:
            async with asyncio.timeout(TEST_S):
                return GatewayTest(await _look(opened))
        except TimeoutError:
            return GatewayTest(error=f"The model provider didn't respond within {TEST_S:g} s.")
        except GatewayError as exc:
            return GatewayTest(error=exc.message)
        finally:
            await opened.gateway.close()


async def _look(opened: ConfiguredGateway) -> Sequence[str]:
    gateway, config = opened.gateway, opened.config
    found: Sequence[str] = ()
    problem: Refused | None = None
    try:
        found = await gateway.list_models() if isinstance(gateway, ProviderGateway) else ()
    except Refused as exc:  # it answers, but not every server lists its models
        problem = exc
    if config.models or config.default_model or not isinstance(gateway, ProviderGateway):
        await ask(opened.reach(opened.default_model))
    elif problem is not None and not problem.reason:  # a web server's page; an API says what is wrong
        raise GatewayError("There is no model API at this address. Check the gateway's address.") from problem
    return found


async def ask(model: ConnectedModel) -> None:
    """Waits for the first sign of a reply; raises GatewayError."""
    question = ModelMessage("user", (TextBlock("Say OK."),))
    stream = model.stream(ModelRequest(model.id, "", (question,), max_tokens=16))
    try:
        async for event in stream:
            if isinstance(event, Retrying):  # the gateway retries by itself; who asks wants to know why
                raise event.error
            return
    finally:
        await stream.aclose()
