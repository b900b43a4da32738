import { requestProblemOf, type AnswerBody, type Problem } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { useEffect, useRef, useState } from "react";

import { outbox } from "../../state/front-end";

/** Sends a decision; false if the user withdrew it before it could be sent. */
export type Decide = (requestId: string, body: AnswerBody) => Promise<boolean>;

/** Lets the user decide on a request, once: with what went wrong, and with the focus where the user continues. */
export function useDecision(requestId: string, isOpen: boolean, onDecide: Decide) {
  const place = useRef<HTMLDivElement>(null);
  const outcome = useRef<HTMLParagraphElement>(null);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  /** A decision that the server doesn't have yet, perhaps of an earlier visit. */
  const unsent = useSelected(outbox.items, (all) => all.find(({ entry }) => entry.kind === "answer" && entry.requestId === requestId));
  /** Whether the user decided here: in another tab the focus stays where it is. */
  const isMine = useRef(false);
  useEffect(() => {
    if (isOpen || !isMine.current) return;
    isMine.current = false;
    const next = [...document.querySelectorAll<HTMLElement>("[data-request]")].find((it) => it !== place.current);
    (next ?? outcome.current)?.focus();
  }, [isOpen]);
  const decide = async (body: AnswerBody) => {
    if (sending || unsent) return;
    isMine.current = true;
    setSending(true);
    setProblem(null);
    try {
      if (await onDecide(requestId, body)) return;
      isMine.current = false;
      setSending(false);
    } catch (error) {
      isMine.current = false;
      setProblem(requestProblemOf(error));
      setSending(false);
    }
  };
  /** For a request's box: makes it findable, and focuses it when the user opens it. */
  const open = { ref: place, tabIndex: -1, "data-request": isOpen ? requestId : undefined };
  return { open, outcome, sending: sending || unsent !== undefined, unsent, problem, decide };
}
