/** Gateways as an admin fills them in. Pure. */

import { type GatewayBody, type GatewayView, type UnsavedGatewayBody } from "@threadkeep/client";

/** What an admin chooses first; each speaks an API of its own. */
export type Provider = "anthropic" | "openai" | "compatible";
export const PROVIDERS: readonly Provider[] = ["anthropic", "openai", "compatible"];

export interface GatewayDraft {
  provider: Provider;
  name: string;
  url: string;
  apiKey: string;
  models: readonly string[];
  defaultModel: string;
}

/** A new gateway, with a name that no other has. */
export function newDraft(taken: readonly GatewayView[]): GatewayDraft {
  return { provider: "anthropic", name: freeName("anthropic", taken), url: "", apiKey: "", models: [], defaultModel: "" };
}

export function draftOf({ kind, name, url, models, defaultModel }: GatewayView): GatewayDraft {
  const provider = kind === "anthropic" ? "anthropic" : kind === "responses" || !url ? "openai" : "compatible";
  return { provider, name, url: url ?? "", apiKey: "", models: models.map((it) => it.name), defaultModel: defaultModel ?? "" };
}

/** The draft for another provider; a name that the admin typed stays. */
export function withProvider(draft: GatewayDraft, provider: Provider, taken: readonly GatewayView[]): GatewayDraft {
  const isOwnName = draft.name !== freeName(draft.provider, taken);
  return { ...draft, provider, name: isOwnName ? draft.name : freeName(provider, taken), models: [], defaultModel: "" };
}

function freeName(provider: Provider, taken: readonly GatewayView[]): string {
  const base = provider === "compatible" ? "local" : provider;
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.some((it) => it.name === name)) return name;
  }
}

const KINDS = { anthropic: "anthropic", openai: "responses", compatible: "openai" } as const;

/** What can be tested: the account, and the model that would answer. */
export function unsavedBody(draft: GatewayDraft): UnsavedGatewayBody {
  const { provider, url, apiKey, models, defaultModel } = draft;
  return {
    kind: KINDS[provider],
    ...(url.trim() && { url: url.trim() }),
    ...(apiKey.trim() && { apiKey: apiKey.trim() }),
    ...(models.length && { models: [...models], defaultModel: defaultModel || models[0] }),
  };
}

export function gatewayBody(draft: GatewayDraft): GatewayBody {
  return { ...unsavedBody(draft), name: draft.name.trim() };
}

/** The changes to a gateway: what an admin said about a model stays if the model does. */
export function patchOf(draft: GatewayDraft, kept: GatewayView): object {
  const { kind, url, apiKey, defaultModel } = unsavedBody(draft);
  const models = draft.models.map((name) => kept.models.find((it) => it.name === name) ?? name);
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

const OTHER_PURPOSES = /embed|whisper|tts|dall-e|image|moderation|audio|realtime|transcri|babbage|davinci|sora|rerank|search-(?:doc|query)|guard/i;

/** The models that are made for chat, by their names. */
export function chatModels(names: readonly string[]): string[] {
  return names.filter((it) => !OTHER_PURPOSES.test(it));
}

/** The names in a text, one per line. */
export function namesIn(text: string): string[] {
  return [...new Set(text.split("\n").map((it) => it.trim()).filter(Boolean))];
}
