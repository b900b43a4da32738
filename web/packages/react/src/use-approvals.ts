import { type AnswerBody, type ApprovalView } from "@threadkeep/client";
import { useCallback } from "react";

import { useFrontEnd } from "./provider.tsx";
import { useStore } from "./use-store.ts";

/** What turns wait for in all of the user's conversations, oldest first. */
export function useApprovals() {
  const { approvals, outbox } = useFrontEnd();
  /** Answers one, also if the server can be reached only later. Throws if it was answered otherwise or has expired; false
  if the user withdrew the answer before. */
  const answer = useCallback(
    async ({ conversationId, turnId, requestId }: ApprovalView, body: AnswerBody): Promise<boolean> => {
      try {
        return await outbox.deliver({ kind: "answer", conversationId, turnId, requestId, body });
      } finally {
        void approvals.refresh();
      }
    },
    [approvals, outbox],
  );
  return { approvals: useStore(approvals.items), answer };
}
