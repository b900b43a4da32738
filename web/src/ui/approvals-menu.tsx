import { type ApprovalView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { BellRing } from "lucide-react";

import { approvals, conversations } from "../state/front-end";
import { go } from "../state/route";
import { useWords } from "../words";
import { Menu } from "./menu";

/** How many requests wait for the person, wherever they are, and the way to each. */
export function ApprovalsMenu() {
  const words = useWords();
  const open = useStore(approvals.items);
  const { items } = useStore(conversations.state);
  if (!open.length) return null;
  const follow = ({ conversationId, requestId }: ApprovalView) => {
    go({ name: "conversation", id: conversationId });
    focusRequest(requestId);
  };
  const choices = open.map((it) => ({
    label: it.kind === "tool" && it.toolName ? words.allowCall(it.toolName, it.server ?? "") : it.message,
    detail: [items.find(({ id }) => id === it.conversationId)?.title || words.untitled, gistOf(it)].filter(Boolean).join(" · "),
    run: () => follow(it),
  }));
  return (
    <Menu label={words.openRequests(open.length)} className="icon requests" groups={[{ items: choices }]}>
      <BellRing aria-hidden />
      <span className="count" aria-hidden>
        {open.length}
      </span>
    </Menu>
  );
}

/** A call in one line, to distinguish two calls of one tool. */
function gistOf({ arguments: values = {} }: ApprovalView): string {
  return Object.values(values).find((it) => typeof it === "string") ?? "";
}

const LOOK_MS = 100;
const LOOKS = 50;

/** Leads to a request as soon as its conversation is shown. */
function focusRequest(requestId: string, looks = LOOKS): void {
  const found = document.querySelector<HTMLElement>(`[data-request="${CSS.escape(requestId)}"]`);
  if (found) found.focus();
  else if (looks) setTimeout(() => focusRequest(requestId, looks - 1), LOOK_MS);
}
