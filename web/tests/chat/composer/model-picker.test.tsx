import { act } from "react";
import { expect, it } from "vitest";

import { ModelPicker } from "../../../src/chat/composer/model-picker";
import { click, draw, respond } from "../../draw";

const model = (name: string, isDefault = false) => ({ id: `a/${name}`, name, default: isDefault, takesImages: true, supportsTools: true });

it("asks again for the models when it opens: somebody may have connected one", async () => {
  const listed = [model("one", true), model("two")];
  respond.mockImplementation(async () => Response.json({ items: listed }));
  const drawn = draw(<ModelPicker agentId="an agent with models" draftKey="c" />);
  await act(async () => {});
  await act(async () => {});
  listed.push(model("three"));
  await click(drawn.named("Model: one"));
  await act(async () => {});
  const offered = [...document.querySelectorAll("[role=menuitemradio] span")].map((it) => it.textContent);
  expect(offered).toEqual(["onethe agent’s own", "two", "three"]);
});
