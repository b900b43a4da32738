/** Gateways as an admin fills them in. Pure. */

import { type GatewayBody, type GatewayView, type ListedModelBody, type PriceBody, type PriceView, type UnsavedGatewayBody } from "@threadkeep/client";

/** The small model that comes with Threadkeep. */
export function isDemonstration({ kind, defaultModel, source }: GatewayView): boolean {
  return kind === "local" && defaultModel === null && source === "settings";
}

/** What an admin chooses first; each speaks an API of its own. */
export type Provider = "anthropic" | "openai" | "compatible";
export const PROVIDERS: readonly Provider[] = ["anthropic", "openai", "compatible"];

/** What a model costs per million tokens, as typed; blank where nobody typed it. */
export interface TypedPrice {
  input: string;
  output: string;
}
export const NO_PRICE: TypedPrice = { input: "", output: "" };

export interface GatewayDraft {
  provider: Provider;
  name: string;
  url: string;
  apiKey: string;
  models: readonly string[];
  /** By the model's name. */
  prices: Readonly<Record<string, TypedPrice>>;
  /** A model that the provider doesn't list, as far as its name is typed. */
  anotherModel: string;
  defaultModel: string;
}

/** The account alone, whatever it offers. */
export const NO_MODELS = { models: [], prices: {}, anotherModel: "", defaultModel: "" } as const satisfies Partial<GatewayDraft>;

/** A new gateway, with a name that no other has. */
export function newDraft(taken: readonly GatewayView[]): GatewayDraft {
  return named({ provider: "anthropic", name: "", url: "", apiKey: "", ...NO_MODELS }, taken);
}

export function draftOf({ kind, name, url, models, defaultModel }: GatewayView): GatewayDraft {
  const provider = kind === "anthropic" ? "anthropic" : kind === "responses" || !url ? "openai" : "compatible";
  const prices = Object.fromEntries(models.flatMap((it) => (it.price ? [[it.name, { input: it.price.input, output: it.price.output }]] : [])));
  return { provider, name, url: url ?? "", apiKey: "", models: models.map((it) => it.name), prices, anotherModel: "", defaultModel: defaultModel ?? "" };
}

/** The draft for another provider. */
export function withProvider(draft: GatewayDraft, provider: Provider, taken: readonly GatewayView[]): GatewayDraft {
  return renamed(draft, { ...draft, provider, ...NO_MODELS }, taken);
}

/** The draft for another address. */
export function withUrl(draft: GatewayDraft, url: string, taken: readonly GatewayView[]): GatewayDraft {
  return renamed(draft, { ...draft, url }, taken);
}

/** A name that the admin typed stays; else it follows the provider. */
function renamed(before: GatewayDraft, draft: GatewayDraft, taken: readonly GatewayView[]): GatewayDraft {
  return before.name === named(before, taken).name ? named(draft, taken) : draft;
}

/** The draft with a name after its provider that no other gateway has. */
function named(draft: GatewayDraft, taken: readonly GatewayView[]): GatewayDraft {
  const base = draft.provider === "compatible" ? nameIn(draft.url) : draft.provider;
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.some((it) => it.name === name)) return { ...draft, name };
  }
}

/** The port of Ollama, the server that most people run themselves. */
const OLLAMA = "11434";
const UNKNOWN = "compatible";

/** Who runs the server at an address: `openrouter` at `https://openrouter.ai/api/v1`. */
function nameIn(url: string): string {
  if (!URL.canParse(url.trim())) return UNKNOWN;
  const { hostname, port } = new URL(url.trim());
  if (port === OLLAMA) return "ollama";
  const labels = hostname.split(".");
  const isAddress = hostname === "localhost" || /^[\d.]+$|^\[/.test(hostname);
  const name = isAddress ? "" : labels.length > 1 ? labels.at(-2)! : labels[0]!;
  return /^(?!default$)[a-z0-9][a-z0-9-]{0,50}$/.test(name) ? name : UNKNOWN;
}

const KINDS = { anthropic: "anthropic", openai: "responses", compatible: "openai" } as const;

/** The models to offer: those that were chosen, and the one whose name is typed. */
export function offeredModels({ models, anotherModel }: GatewayDraft): string[] {
  return [...new Set([...models, anotherModel.trim()].filter(Boolean))];
}

/** The model for agents that don't name one: the chosen one if it is still offered, else the first. */
export function defaultOf(draft: GatewayDraft): string | undefined {
  const offered = offeredModels(draft);
  return offered.includes(draft.defaultModel) ? draft.defaultModel : offered[0];
}

/** What can be tested: the account, and the model that would answer. */
export function unsavedBody(draft: GatewayDraft): UnsavedGatewayBody {
  const { provider, url, apiKey, prices } = draft;
  const models = offeredModels(draft).map((name) => {
    const price = priceBody(prices[name]);
    return price ? { name, price } : name;
  });
  return {
    kind: KINDS[provider],
    ...(url.trim() && { url: url.trim() }),
    ...(apiKey.trim() && { apiKey: apiKey.trim() }),
    ...(models.length && { models, defaultModel: defaultOf(draft) }),
  };
}

export function gatewayBody(draft: GatewayDraft): GatewayBody {
  return { ...unsavedBody(draft), name: draft.name.trim() };
}

/** A price as the server takes it; undefined if none was typed. What is said about cached input stays. */
function priceBody(typed: TypedPrice = NO_PRICE, kept?: PriceView): PriceBody | undefined {
  const [input, output] = [typed.input.trim(), typed.output.trim()];
  if (!input || !output) return undefined;
  if (!kept) return { input, output };
  // The server fills in the price of other input where nothing is said about cached input.
  return {
    input,
    output,
    ...(kept.cachedInput !== kept.input && { cachedInput: kept.cachedInput }),
    ...(kept.cacheWrite !== kept.input && { cacheWrite: kept.cacheWrite }),
  };
}

/** A price that can't be saved: a half of it is missing or no amount. */
export interface PriceFault {
  model: string;
  field: keyof TypedPrice;
  kind: "missing" | "noAmount";
}

/** As the server takes amounts. */
const AMOUNT = /^\d{1,7}(?:\.\d{1,6})?$/;

export function priceFaultOf({ models, prices }: GatewayDraft): PriceFault | null {
  for (const model of models) {
    const { input, output } = prices[model] ?? NO_PRICE;
    if (!input.trim() && !output.trim()) continue;
    for (const [field, typed] of [["input", input.trim()], ["output", output.trim()]] as const)
      if (!AMOUNT.test(typed)) return { model, field, kind: typed ? "noAmount" : "missing" };
  }
  return null;
}

/** The changes to a gateway: what an admin said about a model stays if the model does. */
export function patchOf(draft: GatewayDraft, kept: GatewayView): object {
  const { kind, url, apiKey, defaultModel } = unsavedBody(draft);
  const models = offeredModels(draft).map((name): string | ListedModelBody => {
    const { price: before, ...said } = kept.models.find((it) => it.name === name) ?? { name };
    const price = priceBody(draft.prices[name], before);
    const body = price ? { ...said, price } : said;
    return Object.keys(body).length > 1 ? body : name;
  });
  const isSameKind = draft.provider === draftOf(kept).provider;
  return {
    ...(!isSameKind && { kind }),
    url: url ?? null,
    ...(apiKey && { apiKey }),
    models,
    defaultModel: defaultModel ?? null,
  };
}

/** Whether the account is complete enough to connect to it. */
export function canTest({ provider, url, apiKey }: GatewayDraft, hasKey = false): boolean {
  return provider === "compatible" ? /^https?:\/\/./.test(url.trim()) : hasKey || apiKey.trim() !== "";
}

/** The first field without which there is nothing to test. */
export function missingIn(draft: GatewayDraft, hasKey = false): "url" | "apiKey" | "name" | null {
  if (!canTest(draft, hasKey)) return draft.provider === "compatible" ? "url" : "apiKey";
  return draft.name.trim() ? null : "name";
}

/** The model that nobody has to choose, as there is no other for chat. */
export function onlyModel(listed: readonly string[]): string | null {
  const forChat = chatModels(listed);
  const candidates = forChat.length ? forChat : listed;
  return candidates.length === 1 ? candidates[0]! : null;
}

const OTHER_PURPOSES = /embed|whisper|tts|dall-e|image|moderation|audio|realtime|transcri|babbage|davinci|sora|rerank|search-(?:doc|query)|guard/i;

/** The models that are made for chat, by their names. */
export function chatModels(names: readonly string[]): string[] {
  return names.filter((it) => !OTHER_PURPOSES.test(it));
}

/** The names in a text, one per line. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split("\n").map((it) => it.trim()).filter(Boolean))];
}
