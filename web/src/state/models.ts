/** The models that the user can choose, and which one each conversation uses. */

import { Store, type ModelView, type ModelsView } from "@threadkeep/client";

import { api } from "../api/api";
import { copies } from "../offline/device-copies";
import { store } from "../offline/storage";

/** Which model replies where an agent names none: the small embedded one, until an admin connects another. */
export type ModelState = "none" | "demonstration" | "connected";
export const modelState = new Store<ModelState>((document.documentElement.dataset["model"] ?? "connected") as ModelState);

/** The kept page may be older than the model that somebody connected: only the server's word is a reason to offer to connect one. */
export function doubtModelState(): void {
  modelState.set("connected");
}

const NOTHING: readonly ModelView[] = [];
const byAgent = new Map<string, Store<readonly ModelView[]>>();

/** What an agent lets its users choose: empty until it is known, and where there is nothing to choose. */
export function modelsFor(agentId: string | undefined): Store<readonly ModelView[]> {
  const key = agentId ?? "";
  let found = byAgent.get(key);
  if (!found) {
    found = new Store(NOTHING);
    byAgent.set(key, found);
    if (agentId !== undefined) void load(agentId, found).catch(() => byAgent.delete(key)); // tried again later
  }
  return found;
}

async function load(agentId: string, into: Store<readonly ModelView[]>): Promise<void> {
  const path = `/api/models?agentId=${agentId}`;
  const show = ({ items }: ModelsView) => into.set(items.length > 1 ? items : NOTHING);
  try {
    const view = await api.get<ModelsView>("/api/models", { agentId });
    show(view);
    copies.keep(path, view);
  } catch (error) {
    const copy = into.get() === NOTHING ? await copies.read<ModelsView>(path) : undefined;
    if (!copy) throw error;
    show(copy);
  }
}

/** Reads what an agent offers again: somebody may have connected a model meanwhile. */
export async function refreshModelsOf(agentId: string | undefined): Promise<void> {
  if (agentId !== undefined) await load(agentId, modelsFor(agentId)).catch(() => {}); // what is known stays
}

/** Reads them again: an admin has connected or removed some. */
export async function refreshModels(): Promise<void> {
  const loading = [...byAgent].map(([agentId, into]) => (agentId ? load(agentId, into) : undefined));
  const all = api.get<ModelsView>("/api/models").then(({ items }) => modelState.set(stateOf(items)));
  await Promise.allSettled([all, ...loading]);
}

function stateOf(models: readonly ModelView[]): ModelState {
  const own = models.find((it) => it.default);
  return !own ? "none" : own.name.endsWith("(demonstration)") ? "demonstration" : "connected";
}

/** Forgets whose models they were. */
export function forgetModels(): void {
  byAgent.clear();
  choices.set({});
  localStorage.removeItem(KEY);
}

const KEY = "threadkeep.models";
/** A choice is small, and conversations are many. */
const MOST_KEPT = 200;

/** The models that the user chose, by draft: the id of a conversation, or of a new one. The newest are last. */
export const choices = new Store<Readonly<Record<string, string>>>(read());

function read(): Record<string, string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, string>) : {};
  } catch {
    return {};
  }
}

/** Uses a model from now on; null for the agent's own. */
export function chooseModel(draftKey: string, model: string | null): void {
  const { [draftKey]: _, ...others } = choices.get();
  const kept = Object.entries({ ...others, ...(model !== null && { [draftKey]: model }) }).slice(-MOST_KEPT);
  choices.set(Object.fromEntries(kept));
  store(KEY, JSON.stringify(choices.get()));
}

/** The model that was chosen here and is still offered; undefined for the agent's own. */
export function chosenModel(draftKey: string, offered: readonly ModelView[]): string | undefined {
  const chosen = choices.get()[draftKey];
  return offered.some((it) => it.id === chosen) ? chosen : undefined;
}

/** A new conversation has begun: what was chosen for it stays. */
export function moveChoice(from: string, to: string): void {
  const chosen = choices.get()[from];
  if (chosen === undefined) return;
  chooseModel(from, null);
  chooseModel(to, chosen);
}
