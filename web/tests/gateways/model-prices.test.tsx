import { type GatewayView } from "@threadkeep/client";
import { act } from "react";
import { expect, it } from "vitest";

import { GatewayCard } from "../../src/gateways/gateway-card";
import { GatewayForm } from "../../src/gateways/gateway-form";
import { click, draw, respond, type } from "../draw";

const KEPT: GatewayView = {
  name: "work",
  kind: "openai",
  url: "http://127.0.0.1:11434/v1",
  apiKey: "••••••••",
  models: [{ name: "large" }],
  defaultModel: null,
  source: "admin",
  status: "connected",
  version: 3,
};

it("sets a model's price, and says what is missing from it", async () => {
  const sent: unknown[] = [];
  respond.mockImplementation(async (_, { body }) => {
    sent.push(JSON.parse(String(body)));
    return Response.json(KEPT);
  });
  const saved: GatewayView[] = [];
  const drawn = draw(<GatewayForm kept={KEPT} all={[KEPT]} onSaved={(it) => saved.push(it)} />);
  const [input, output] = drawn.named("large").querySelectorAll("input");
  await type(input!, "3");
  await click(drawn.named("Save"));
  expect([drawn.find(".wrong").textContent, document.activeElement, sent]).toEqual(["A price needs both, for input and output.", output, []]);
  await type(output!, "15.00");
  await click(drawn.named("Save"));
  await act(async () => {});
  expect(sent).toEqual([{ url: KEPT.url, models: [{ name: "large", price: { input: "3", output: "15.00" } }], defaultModel: "large" }]);
  expect(saved).toEqual([KEPT]);
});

it("says where the operator sets prices that can't be set on the page", () => {
  const text = (gateway: Partial<GatewayView>) => draw(<GatewayCard gateway={{ ...KEPT, ...gateway }} onEdit={() => {}} onDelete={() => {}} />).text;
  expect(text({ source: "settings" })).toContain("in threadkeep.toml, under [gateways.work]");
  expect(text({ source: "settings", name: "default" })).toContain("connect the same account here");
  expect(text({ source: "settings", kind: "local" })).not.toContain("threadkeep.toml");
  expect(text({})).not.toContain("threadkeep.toml");
});
