import { type GatewayView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { canTest, chatModels, draftOf, gatewayBody, namesIn, newDraft, patchOf, priceFaultOf, unsavedBody, withProvider, withUrl } from "../../src/gateways/gateway";

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
  expect(withProvider(newDraft([]), "openai", []).name).toBe("openai");
});

it("names a compatible server after its address, unless the admin has typed a name", () => {
  const server = withProvider(newDraft([]), "compatible", []);
  const nameAt = (url: string, ...taken: string[]) => withUrl(server, url, taken.map((name) => ({ ...KEPT, name }))).name;
  expect(server.name).toBe("compatible");
  expect(nameAt("http://127.0.0.1:11434/v1")).toBe("ollama");
  expect(nameAt("http://127.0.0.1:11434/v1", "ollama")).toBe("ollama-2");
  expect(nameAt("https://openrouter.ai/api/v1")).toBe("openrouter");
  expect(nameAt(" https://api.groq.com/openai/v1")).toBe("groq");
  expect(nameAt("http://gpu-box:8000/v1")).toBe("gpu-box");
  expect([nameAt("http://10.0.0.7:8000"), nameAt("http://[::1]:8000"), nameAt("http://localhost:8080"), nameAt("http")]).toEqual(Array(4).fill("compatible"));
  expect(withUrl({ ...server, name: "work" }, "https://openrouter.ai", []).name).toBe("work");
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

it("sends the price of a model, whole or not at all", () => {
  const draft = { ...newDraft([]), apiKey: "sk-1", models: ["b", "a"], prices: { b: { input: " 3 ", output: "15.5" }, gone: { input: "x", output: "" } } };
  expect(unsavedBody(draft).models).toEqual([{ name: "b", price: { input: "3", output: "15.5" } }, "a"]);
  expect(priceFaultOf(draft)).toBe(null);
  const faulty = (input: string, output: string) => priceFaultOf({ ...draft, prices: { a: { input, output } } });
  expect(faulty("", "1")).toEqual({ model: "a", field: "input", kind: "missing" });
  expect(faulty("1", "0,5")).toEqual({ model: "a", field: "output", kind: "noAmount" });
  expect([faulty(" ", ""), faulty("0", "0.000001")]).toEqual([null, null]);
});

it("changes a price, keeps one of cached input that differs from it, and takes a price back", () => {
  const priced = (cachedInput: string) => ({ ...KEPT, models: [{ name: "large", price: { input: "3.00", cachedInput, cacheWrite: "3.00", output: "15.00" } }] });
  const patched = (kept: GatewayView, input: string, output: string) => patchOf({ ...draftOf(kept), prices: { large: { input, output } } }, kept);
  expect(draftOf(priced("0.30")).prices).toEqual({ large: { input: "3.00", output: "15.00" } });
  expect(patched(priced("0.30"), "4", "16")).toMatchObject({ models: [{ name: "large", price: { input: "4", cachedInput: "0.30", output: "16" } }] });
  expect(patched(priced("3.00"), "4", "16")).toMatchObject({ models: [{ name: "large", price: { input: "4", output: "16" } }] });
  expect(patched(priced("3.00"), "", "")).toMatchObject({ models: ["large"] });
  expect(patched({ ...KEPT, models: [{ name: "large", contextTokens: 9000 }] }, "1", "2")).toMatchObject({
    models: [{ name: "large", contextTokens: 9000, price: { input: "1", output: "2" } }],
  });
});

it("knows models that don't chat by their names", () => {
  expect(chatModels(["gpt-5", "text-embedding-3-large", "whisper-1", "claude-sonnet-4-5", "gpt-image-1"])).toEqual([
    "gpt-5",
    "claude-sonnet-4-5",
  ]);
  expect(namesIn(" a \n\nb\na")).toEqual(["a", "b"]);
});
