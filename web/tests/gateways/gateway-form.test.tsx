import { type GatewayTestView, type GatewayView } from "@threadkeep/client";
import { beforeEach, expect, it, vi } from "vitest";

import { GatewayCard } from "../../src/gateways/gateway-card";
import { GatewayForm } from "../../src/gateways/gateway-form";
import { click, draw, press, respond, seen, type, type Drawn } from "../draw";

/** What the provider responds to each test, in turn; the last one again. */
let tests: GatewayTestView[] = [];
const sent: Record<string, unknown>[] = [];
const saved = vi.fn();

beforeEach(() => {
  sent.length = 0;
  saved.mockClear();
  respond.mockImplementation(async (url, { body }) => {
    if (!url.pathname.endsWith("/test")) {
      sent.push(JSON.parse(body as string) as Record<string, unknown>);
      return Response.json({ name: "local" });
    }
    return Response.json(tests.length > 1 ? tests.shift() : tests[0]);
  });
});

/** The form for a compatible server with an address. */
async function filledIn(): Promise<Drawn> {
  const drawn = draw(<GatewayForm kept={null} all={[]} onSaved={saved} />);
  await click(drawn.place.querySelectorAll<HTMLElement>("[type=radio]")[2]!);
  await type(drawn.find<HTMLInputElement>("[type=url]"), "http://127.0.0.1:11434/v1");
  return drawn;
}
const clicked = async (drawn: Drawn, name: string, until: () => void) => {
  await click(drawn.named(name));
  await seen(until);
};
const boxes = (drawn: Drawn) => [...drawn.place.querySelectorAll<HTMLInputElement>(".model-choice input")].map((it) => it.checked);

it("ticks the only model, and offers another that the provider doesn't list", async () => {
  tests = [{ ok: true, models: ["scripted", "text-embedding-x"] }];
  const drawn = await filledIn();
  await clicked(drawn, "Test", () => expect(boxes(drawn)).toEqual([true]));
  const another = drawn.find<HTMLInputElement>(".another-model input");
  await type(another, " large ");
  await press(another, "Enter");
  expect([boxes(drawn), another.value]).toEqual([[true, true], ""]);
  await click(drawn.find(".model-choice input")); // in the order of their names
  expect(boxes(drawn)).toEqual([false, true]);
  await click(drawn.find(".model-choice input"));
  await type(another, "huge"); // not added, but meant
  await clicked(drawn, "Connect", () => expect(saved).toHaveBeenCalled());
  expect(sent).toEqual([expect.objectContaining({ models: ["scripted", "large", "huge"], defaultModel: "scripted" })]);
});

it("says at its field what is missing", async () => {
  tests = [{ ok: true, models: ["one", "two"] }];
  const drawn = await filledIn();
  const address = drawn.find<HTMLInputElement>("[type=url]");
  await type(address, "");
  await click(drawn.named("Test"));
  expect([document.activeElement, drawn.find(".wrong").textContent]).toEqual([address, "Enter an address that begins with http:// or https://."]);
  await type(address, "http://127.0.0.1:11434/v1");
  await clicked(drawn, "Test", () => expect(boxes(drawn)).toEqual([false, false]));
  await click(drawn.named("Connect"));
  expect(drawn.find(".wrong").textContent).toBe("Choose at least one model, or enter the name of one.");
  expect(document.activeElement).toBe(drawn.find(".another-model input"));
});

it("forgets the models after a failed test, and keeps the error", async () => {
  tests = [{ ok: true, models: ["one"] }, { ok: false, models: [], error: "Nobody is there." }];
  const drawn = await filledIn();
  await clicked(drawn, "Test", () => expect(boxes(drawn)).toEqual([true]));
  await clicked(drawn, "Test", () => expect(drawn.find("[role=alert]").textContent).toBe("Nobody is there."));
  expect([boxes(drawn), drawn.allNamed("Connect")]).toEqual([[], []]);
});

it("shows what the test of a gateway found", async () => {
  const gateway = { name: "work", kind: "openai", url: null, models: [], defaultModel: null, source: "admin", status: "connected" };
  const drawn = draw(<GatewayCard gateway={gateway as unknown as GatewayView} onEdit={vi.fn()} onDelete={vi.fn()} />);
  tests = [{ ok: true, models: [] }];
  await clicked(drawn, "Test work", () => expect(drawn.find("[role=status]").textContent).toBe("Test passed."));
  tests = [{ ok: false, models: [], error: "Nobody is there." }];
  await clicked(drawn, "Test work", () => expect(drawn.find("[role=status]").textContent).toBe("Test failed."));
  expect(drawn.find(".wrong").textContent).toBe("Nobody is there.");
});
