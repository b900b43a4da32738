/** What happens in the user's conversations while this tab is hidden. */

import { type ApprovalView, type TurnView, type UserEvent } from "@threadkeep/client";

import { api } from "../api/api";
import { approvals, frontEnd } from "../state/front-end";
import { setUnseen } from "../state/page-title";
import { route } from "../state/route";

/** Something that the user would like to know. */
export interface Happening {
  conversationId: string;
  /** Missing if an answer is ready. */
  request?: ApprovalView;
  hasFailed?: boolean;
}

interface Listener {
  /** Called by the one tab that notifies the user. */
  onHappening: (happening: Happening) => void;
  /** The user is back; `missed` if something has happened meanwhile. */
  onReturn: (missed: boolean) => void;
}

/** The tab with the conversation reports it, if it can; a visible tab makes the others silent. */
const BEFORE_OTHERS_MS = { seen: 0, here: 150, elsewhere: 300 };
const SILENT_MS = 5000;

/** Watches until the returned function is called. */
export function watchAbsence({ onHappening, onReturn }: Listener): () => void {
  const closing = new AbortController();
  const unseen = new Set<string>();
  /** Conversations that the user has had open here: programs may hold many others. */
  const visited = new Set<string>();
  const visit = () => {
    const at = route.get();
    if (at.name === "conversation") visited.add(at.id);
  };
  visit();
  const unvisit = route.subscribe(visit);

  const hear = async (event: UserEvent) => {
    const isSeen = !document.hidden;
    const happening = isSeen ? null : await happeningOf(event, visited);
    if (!isSeen && (!happening || !document.hidden)) return;
    if (happening) {
      unseen.add(happening.conversationId);
      show(unseen.size);
    }
    const wait = isSeen ? BEFORE_OTHERS_MS.seen : isAt(event.conversationId) ? BEFORE_OTHERS_MS.here : BEFORE_OTHERS_MS.elsewhere;
    await api.pause(wait, closing.signal);
    await onceAmongTabs(event, () => happening && onHappening(happening));
  };
  const unlisten = frontEnd.events.on((event) => {
    if (concerns(event)) void hear(event);
  });
  document.addEventListener(
    "visibilitychange",
    () => {
      if (document.hidden) return;
      onReturn(unseen.size > 0);
      unseen.clear();
      show(0);
    },
    { signal: closing.signal },
  );
  return () => {
    closing.abort();
    unvisit();
    unlisten();
    show(0);
  };
}

function concerns({ type, turnId }: UserEvent): boolean {
  return turnId !== undefined && (type === "turn_ended" || type === "approval_opened");
}

function isAt(conversationId: string | undefined): boolean {
  const at = route.get();
  return at.name === "conversation" && at.id === conversationId;
}

/** In the tab's title, and on the icon of an installed page. */
function show(count: number): void {
  setUnseen(count);
  void navigator.setAppBadge?.(count).catch(() => {}); // as far as the system allows
}

async function happeningOf({ type, conversationId = "", turnId }: UserEvent, visited: ReadonlySet<string>): Promise<Happening | null> {
  try {
    if (type === "approval_opened") {
      await approvals.refresh();
      const request = approvals.items.get().find((it) => it.turnId === turnId);
      return request && request.kind !== "client_tool" ? { conversationId, request } : null;
    }
    if (!visited.has(conversationId)) return null;
    const { status } = await api.get<TurnView>(`/api/turns/${turnId}`);
    // Somebody stopped it, and so knows.
    return status === "CANCELLED" ? null : { conversationId, hasFailed: status === "FAILED" };
  } catch {
    return null; // it can't be said any more what it was
  }
}

/** Runs it unless another tab has just done so. */
async function onceAmongTabs({ id }: UserEvent, run: () => void): Promise<void> {
  const name = `threadkeep.told.${new URL(".", document.baseURI).pathname}.${id}`;
  await navigator.locks?.request(name, { ifAvailable: true }, async (lock) => {
    if (!lock) return;
    run();
    await api.pause(SILENT_MS);
  });
}
