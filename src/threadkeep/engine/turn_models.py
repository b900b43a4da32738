"""The models of one turn: the one that replies, and those to try if it fails."""

from collections.abc import Iterator, Sequence

from threadkeep.context.attachments import files_in
from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.context.request import TOKENS_KEPT_FOR_THE_REPLY
from threadkeep.domain.events import Notice
from threadkeep.engine.journal import ModelChosen
from threadkeep.ports.gateway import DocumentBlock, GatewayUnavailable, ImageBlock, ModelRequest
from threadkeep.ports.models import ConnectedModel


class TurnModels:
    """Keeps to a model until it fails before its reply; then the next that takes the request as it is."""

    def __init__(self, model: ConnectedModel, fallbacks: Sequence[ConnectedModel] = ()) -> None:
        self.current = model
        self._fallbacks = list(fallbacks)

    def fall_back(
        self, failure: GatewayUnavailable, request: ModelRequest, *, needs_price: bool = False
    ) -> Iterator[Notice | ModelChosen]:
        """Changes to the next model, with notices; raises the failure if there is none.

        `needs_price`: under a budget, only a model whose price is known can be used.
        """
        failed = self.current
        while self._fallbacks:
            model = self._fallbacks.pop(0)
            reason = why_unfit(request, model)
            if needs_price and model.model.price is None:
                reason = "its price isn't known, and there is a budget."
            if reason:
                yield Notice("MODEL_SKIPPED", f"Skipped the model {model.id}: {reason}")
                continue
            self.current = model
            yield ModelChosen(model.id)
            yield Notice("MODEL_FALLBACK", f"{failure.message} {model.id} replies instead of {failed.id}.")
            return
        raise failure


def why_unfit(request: ModelRequest, model: ConnectedModel) -> str | None:
    """Why a model can't take a request as it is; None if it can."""
    if request.tools and not model.model.supports_tools:
        return "it can't call tools."
    for block in files_in(request.messages):
        if isinstance(block, ImageBlock) and not model.files.images:
            return "it doesn't accept images."
        if isinstance(block, DocumentBlock) and not model.files.pdfs:
            return "it doesn't accept PDFs."
    reply = request.max_tokens or TOKENS_KEPT_FOR_THE_REPLY
    if estimate_request_tokens(request) + reply > model.model.context_tokens:
        return f"the request is too long for its {model.model.context_tokens} tokens."
    return None
