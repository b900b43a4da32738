import { canWithdraw, type OutboxItem } from "@threadkeep/client";
import { RotateCw, Undo2 } from "lucide-react";

import { outbox } from "../state/front-end";
import { useWords } from "../words";

/** Says that something is being sent or waits for the server, with buttons to retry and to withdraw it. */
export function UnsentStatus({ item, about = "" }: { item: OutboxItem; about?: string }) {
  const words = useWords();
  const { entry, state, lasts } = item;
  const isWaiting = state === "waiting";
  return (
    <p className={isWaiting ? "unsent" : "unsent sending"} role={isWaiting ? "status" : undefined}>
      <span>
        {about} {!isWaiting ? words.sending : lasts ? words.unsent : words.unsentHere}
      </span>
      {canWithdraw(item) && (
        <span className="choices">
          {isWaiting && (
            <button type="button" className="link" onClick={() => outbox.retry()}>
              <RotateCw aria-hidden /> {words.retry}
            </button>
          )}
          <button type="button" className="link" onClick={() => takeBack(entry.id)}>
            <Undo2 aria-hidden /> {words.takeBack}
          </button>
        </span>
      )}
    </p>
  );
}

function takeBack(id: string): void {
  void outbox.withdraw(id);
  document.getElementById("message")?.focus();
}
