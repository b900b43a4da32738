import { type GatewayView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { canTest, chatModels, draftOf, gatewayBody, namesIn, newDraft, patchOf, unsavedBody, withProvider } from "../../src/gateways/gateway";

const KEPT: GatewayView = {
  name: "work",
  kind: "openai",
  url: "http://127.0.0.1:11434/v1",
  apiKey: "••••••••",
  models: [{ name: "large", contextTokens: 9000 }],
  defaultModel: null,
  source: "admin",
  status: "connected",
  version: 3,
};

it("names a new gateway after its provider, and not like another one", () => {
  const draft = newDraft([{ ...KEPT, name: "anthropic" }]);
  expect(draft.name).toBe("anthropic-2");
  expect(withProvider(draft, "compatible", []).name).toBe("anthropic-2"); // typed, as far as anybody knows
  expect(withProvider(newDraft([]), "compatible", []).name).toBe("local");
});

it("needs a key of the provider, or the address of a server", () => {
  const draft = newDraft([]);
  expect(canTest(draft)).toBe(false);
  expect(canTest({ ...draft, apiKey: "sk-1" })).toBe(true);
  expect(canTest({ ...draft, provider: "compatible", apiKey: "sk-1" })).toBe(false);
  expect(canTest({ ...draft, provider: "compatible", url: "http://127.0.0.1:11434" })).toBe(true);
});

it("sends what was filled in, and the first model as the one that answers", () => {
  const draft = { ...newDraft([]), apiKey: " sk-1 " };
  expect(unsavedBody(draft)).toEqual({ kind: "anthropic", apiKey: "sk-1" });
  expect(gatewayBody({ ...draft, models: ["b", "a"] })).toEqual({
    name: "anthropic",
    kind: "anthropic",
    apiKey: "sk-1",
    models: ["b", "a"],
    defaultModel: "b",
  });
});

it("keeps what an admin said about a model, and the key, unless they are changed", () => {
  const draft = { ...draftOf(KEPT), models: ["small", "large"] };
  expect(patchOf(draft, KEPT)).toEqual({
    url: KEPT.url,
    models: ["small", { name: "large", contextTokens: 9000 }],
    defaultModel: "small",
  });
  expect(patchOf({ ...draft, apiKey: "sk-2" }, KEPT)).toMatchObject({ apiKey: "sk-2" });
});

it("knows models that don't chat by their names", () => {
  expect(chatModels(["gpt-5", "text-embedding-3-large", "whisper-1", "claude-sonnet-4-5", "gpt-image-1"])).toEqual([
    "gpt-5",
    "claude-sonnet-4-5",
  ]);
  expect(namesIn(" a \n\nb\na")).toEqual(["a", "b"]);
});
