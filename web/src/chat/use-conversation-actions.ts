import { type ConversationPatch, type ConversationView } from "@threadkeep/client";
import { Archive, ArchiveRestore, Download, Pencil, Pin, PinOff, Trash2 } from "lucide-react";

import { download } from "../api/download";
import { conversations } from "../state/front-end";
import { go, route } from "../state/route";
import { type MenuGroup, type MenuItem } from "../ui/menu-list";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";

type Change = (id: string, patch: ConversationPatch) => Promise<unknown>;

/** What the user can do with a conversation, in any menu; `change` is the open thread's own, if it is open. */
export function useConversationActions(
  conversation: ConversationView,
  onRename: () => void,
  change: Change = (id, patch) => conversations.change(id, patch),
): MenuGroup[] {
  const words = useWords();
  const { id, pinned } = conversation;
  const title = conversation.title || words.untitled;
  const isArchived = conversation.status === "archived";
  const run = (work: () => Promise<unknown>) => () => {
    work().catch((error: unknown) => toastProblem(words, error));
  };
  /** Leaves the conversation if it is open; undo returns to it, unless the user has moved on. */
  const putAway = async (work: () => Promise<unknown>, message: string, undo: () => Promise<unknown>) => {
    await work();
    const wasOpen = isOpen(id);
    if (wasOpen) go({ name: "new", agentId: null });
    const undoHere = run(async () => {
      await undo();
      if (wasOpen && route.get().name === "new") go({ name: "conversation", id });
    });
    toast(message, { label: words.undo, run: undoHere });
  };
  const archive = () =>
    putAway(
      () => change(id, { status: "archived" }),
      words.archivedOne(title),
      () => conversations.change(id, { status: "active" }),
    );
  const remove = () =>
    putAway(
      () => conversations.delete(id),
      words.deleted(title),
      () => conversations.restore(id),
    );
  /** Who an HTML report is for. */
  const reader = { lang: words.locale.slice(0, 2), timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone };
  const file = (label: string, view: "report" | "export", format: string): MenuItem => ({
    label,
    icon: Download,
    run: run(() => download(`/api/conversations/${id}/${view}`, { format, ...(format === "html" && reader) }, `${title}.${format}`)),
  });
  return [
    {
      items: [
        { label: pinned ? words.unpin : words.pin, icon: pinned ? PinOff : Pin, run: run(() => change(id, { pinned: !pinned })) },
        { label: words.rename, icon: Pencil, run: onRename },
        isArchived
          ? { label: words.unarchive, icon: ArchiveRestore, run: run(() => change(id, { status: "active" })) }
          : { label: words.archive, icon: Archive, run: run(archive) },
      ],
    },
    {
      items: [
        file(words.exportHtml, "report", "html"),
        file(words.exportMarkdown, "report", "md"),
        file(words.exportJson, "export", "json"),
      ],
    },
    { items: [{ label: words.delete, icon: Trash2, isDangerous: true, run: run(remove) }] },
  ];
}

function isOpen(id: string): boolean {
  const at = route.get();
  return at.name === "conversation" && at.id === id;
}
