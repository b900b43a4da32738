"""System prompts over HTTP, component by component."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.context.prompt import Prompt, joined
from threadkeep.domain.workspace import PromptComponent
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.view import View


class ComponentBody(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The component's new text; an empty one removes it."""

    text: Annotated[str, Meta(description="The whole new text; prompts contain the start of a long one.")]


class PromptComponentView(View, frozen=True, kw_only=True):
    """A part of a system prompt as the model receives it; `leftOut` characters did not fit.

    Files come first (files shared by all agents have names like `shared/RULES.md`), then the agent's own
    `systemPrompt` and its `role`.
    """

    name: Annotated[str, Meta(description="What part of the prompt it is, such as `role`.")]
    text: Annotated[str, Meta(description="The text as the model receives it.")]
    length: Annotated[int, Meta(description="How many characters the model gets.")]
    truncated: Annotated[bool, Meta(description="Whether it was too long and has been shortened.")]
    left_out: Annotated[int, Meta(description="How many characters of it the model doesn't get.")]
    editable: Annotated[
        bool, Meta(description="Whether its owner can change it with `PUT …/prompt/{component}`.")
    ]


class PromptNoticeView(View, frozen=True, kw_only=True):
    """A problem with the prompt."""

    code: Annotated[str, Meta(description="What is wrong, as a code that programs can compare.")]
    message: Annotated[str, Meta(description="What is wrong, and what it means for the agent.")]


class PromptView(View, frozen=True, kw_only=True):
    """An agent's system prompt, with its parts in order. `editable` lists the files that you can change."""

    components: Annotated[
        Sequence[PromptComponentView], Meta(description="The parts of the prompt, in the model's order.")
    ]
    length: Annotated[int, Meta(description="How many characters the whole prompt has.")]
    editable: Annotated[
        Sequence[str], Meta(description="The names of the components that its owner can change.")
    ]
    notices: Annotated[
        Sequence[PromptNoticeView], Meta(description="What is missing in the prompt, and why.")
    ]


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
