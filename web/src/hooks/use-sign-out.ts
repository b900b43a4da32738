import { confirmed } from "../state/confirmation";
import { outbox } from "../state/front-end";
import { signOut } from "../state/session";
import { useWords } from "../words";

/** Signs out; asks first if that would delete what has not been sent. */
export function useSignOut(): () => void {
  const words = useWords();
  return () => {
    void (async () => {
      const { length } = outbox.items.get();
      const question = { title: words.signOutUnsent, text: words.signOutUnsentText(length), action: words.signOut };
      if (length && !(await confirmed(question))) return;
      await outbox.discard();
      signOut();
    })();
  };
}
