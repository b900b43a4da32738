import { confirmed } from "../state/confirmation";
import { draftKeys } from "../state/drafts";
import { outbox } from "../state/front-end";
import { signOut } from "../state/session";
import { useWords } from "../words";

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
