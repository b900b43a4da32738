"""System prompts over HTTP, component by component."""

from collections.abc import Sequence

from msgspec import Struct

from threadkeep.context.prompt import Prompt, joined
from threadkeep.domain.workspace import PromptComponent
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.view import View


class ComponentBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The component's new text; an empty one removes it."""

    text: str


class PromptComponentView(View, frozen=True, kw_only=True):
    """A part of a system prompt as the model receives it; `leftOut` characters did not fit.

    Files come first (files shared by all agents have names like `shared/RULES.md`), then the agent's own
    `systemPrompt` and its `role`.
    """

    name: str
    text: str
    length: int
    truncated: bool
    left_out: int
    editable: bool


class PromptNoticeView(View, frozen=True, kw_only=True):
    """A problem with the prompt."""

    code: str
    message: str


class PromptView(View, frozen=True, kw_only=True):
    """An agent's system prompt, with its parts in order. `editable` lists the files that you can change."""

    components: Sequence[PromptComponentView]
    length: int
    editable: Sequence[str]
    notices: Sequence[PromptNoticeView]


async def get_prompt(request: RequestContext, *, agent_id: str) -> PromptView:
    """Read an agent's system prompt, component by component. For its owner and admins."""
    return _view(await request.services.prompts.show(request.user, agent_id))


async def put_component(
    request: RequestContext, *, agent_id: str, component: str, body: ComponentBody
) -> PromptView:
    """Edit a file of an agent's prompt, such as `RULES.md`. It applies from the next turn on."""
    return _view(await request.services.prompts.write(request.user, agent_id, component, body.text))


def _view(prompt: Prompt) -> PromptView:
    editable = [str(component) for component in PromptComponent]
    return PromptView(
        components=[
            PromptComponentView(
                name=component.name,
                text=component.text,
                length=len(component.text),
                truncated=component.left_out > 0,
                left_out=component.left_out,
                editable=component.name in editable,
            )
            for component in prompt.components
        ],
        length=len(joined(prompt.components)),
        editable=editable,
        notices=[PromptNoticeView(code=it.code, message=it.message) for it in prompt.notices],
    )
