import { Archive, ArchiveRestore, Download, Pencil, Pin, PinOff, Trash2 } from "lucide-react";

import { download } from "../api/download";
import { ROUTES, type ConversationPatch, type ConversationView } from "../api/schema";
import { changeConversation, deleteConversation, restoreConversation } from "../state/conversations";
import { go, route } from "../state/route";
import { toast } from "../state/toasts";
import { pageProblemOf } from "../state/use-loaded";
import { useWords } from "../words";
import { type MenuGroup, type MenuItem } from "./menu";
import { toldProblem } from "./problem-bar";

type Change = (id: string, patch: ConversationPatch) => Promise<unknown>;

/** What the user can do with a conversation, wherever its menu is; `change` is the thread's own where it is open. */
export function useConversationActions(
  conversation: ConversationView,
  onRename: () => void,
  change: Change = changeConversation,
): MenuGroup[] {
  const words = useWords();
  const { id, pinned } = conversation;
  const title = conversation.title || words.untitled;
  const isArchived = conversation.status === "archived";
  const run = (work: () => Promise<unknown>) => () => {
    work().catch((error) => toast(toldProblem(words, pageProblemOf(error))));
  };
  const archive = async () => {
    const wasOpen = isOpen(id);
    await change(id, { status: "archived" });
    if (wasOpen) go({ name: "new", agentId: null });
    const undo = run(async () => {
      await changeConversation(id, { status: "active" });
      if (wasOpen) go({ name: "conversation", id });
    });
    toast(words.archivedOne(title), { label: words.undo, run: undo });
  };
  const remove = async () => {
    const wasOpen = isOpen(id);
    await deleteConversation(id);
    if (wasOpen) go({ name: "new", agentId: null });
    const undo = run(async () => {
      await restoreConversation(id);
      if (wasOpen) go({ name: "conversation", id });
    });
    toast(words.deleted(title), { label: words.undo, run: undo });
  };
  const file = (label: string, route: string, format: string): MenuItem[] =>
    ROUTES.has(`GET /api/conversations/{conversation_id}/${route}`)
      ? [{ label, icon: Download, run: run(() => download(`/api/conversations/${id}/${route}`, { format }, `${title}.${format}`)) }]
      : [];
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
        ...file(words.exportHtml, "report", "html"),
        ...file(words.exportMarkdown, "report", "md"),
        ...file(words.exportJson, "export", "json"),
      ],
    },
    { items: [{ label: words.delete, icon: Trash2, isDangerous: true, run: run(remove) }] },
  ];
}

function isOpen(id: string): boolean {
  const at = route.get();
  return at.name === "conversation" && at.id === id;
}
