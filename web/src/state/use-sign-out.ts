import { useStore } from "@threadkeep/react";

import { token } from "../api/api";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { confirmed } from "./confirmation";
import { draftKeys } from "./drafts";
import { outbox } from "./front-end";
import { endSession, isByCookie, session, signOut } from "./session";

/** Whether there is a sign-in that the user can end. */
export function useCanSignOut(): boolean {
  const hasToken = useStore(token) !== null;
  useStore(session);
  return hasToken || isByCookie();
}

/** Signs out, here or in all browsers; asks first if that would delete what has not been sent. */
export function useSignOut(): (everywhere?: boolean) => void {
  const words = useWords();
  return (everywhere = false) => {
    void (async () => {
      const messages = (await outbox.unsent()).length;
      const drafts = draftKeys().length;
      const text = words.signOutUnsentText(messages, drafts);
      if (messages + drafts && !(await confirmed({ title: words.signOutUnsent, text, action: words.signOut }))) return;
      try {
        await endSession(everywhere);
      } catch (error) {
        return toastProblem(words, error);
      }
      await outbox.discard();
      signOut();
    })();
  };
}
