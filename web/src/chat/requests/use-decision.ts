import { requestProblemOf, type AnswerBody, type Problem } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { useEffect, useRef, useState, type RefObject } from "react";

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
    if (!isOpen) return;
    // A question stays with its answer; a call is a line again, which has the focus next.
    const line = place.current?.closest(".reply")?.querySelectorAll<HTMLElement>(".activity > summary");
    const around = place.current?.closest(".approvals-panel") ?? document;
    return () => {
      if (isMine.current) focusNext(around, place, outcome, [...(line ?? [])].at(-1));
      isMine.current = false;
    };
  }, [isOpen]);
  /** Whether the server has the decision. */
  const decide = async (body: AnswerBody): Promise<boolean> => {
    if (sending || unsent) return false;
    isMine.current = true;
    setSending(true);
    setProblem(null);
    try {
      if (await onDecide(requestId, body)) return true;
      isMine.current = false;
      setSending(false);
    } catch (error) {
      isMine.current = false;
      setProblem(requestProblemOf(error));
      setSending(false);
    }
    return false;
  };
  /** For a request's box: makes it findable, and focuses it when the user opens it. */
  const open = { ref: place, tabIndex: -1, "data-request": isOpen ? requestId : undefined };
  return { open, outcome, sending: sending || unsent !== undefined, unsent, problem, decide };
}

/** The focus goes to the next request around it, or else to what has become of this one. */
function focusNext(
  around: Document | Element,
  place: RefObject<HTMLElement | null>,
  outcome: RefObject<HTMLElement | null>,
  line: HTMLElement | undefined,
): void {
  const next = [...around.querySelectorAll<HTMLElement>("[data-request]")].find((it) => it !== place.current);
  (next ?? outcome.current ?? line)?.focus();
}
