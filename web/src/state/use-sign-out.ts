import { useWords } from "../words";
import { confirmed } from "./confirmation";
import { draftKeys } from "./drafts";
import { outbox } from "./front-end";
import { signOut } from "./session";

/** Signs out; asks first if that would delete what has not been sent. */
export function useSignOut(): () => void {
  const words = useWords();
  return () => {
    void (async () => {
      const messages = (await outbox.unsent()).length;
      const drafts = draftKeys().length;
      const text = words.signOutUnsentText(messages, drafts);
      if (messages + drafts && !(await confirmed({ title: words.signOutUnsent, text, action: words.signOut }))) return;
      await outbox.discard();
      signOut();
    })();
  };
}
