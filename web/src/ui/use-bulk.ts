import { type ConversationView } from "@threadkeep/client";

import { useWords } from "../words";
import { toastProblem } from "./problem-bar";
import { toast } from "./toasts";

/** How many requests are made at once. */
const AT_ONCE = 4;

type Work = (id: string) => Promise<unknown>;

/** Does the same with several conversations; what was done can be undone together. */
export function useBulk(again: () => Promise<void>) {
  const words = useWords();
  const each = async (ids: readonly string[], work: Work): Promise<string[]> => {
    const done: string[] = [];
    const left = [...ids];
    let problem: unknown = null;
    const worker = async () => {
      for (let id = left.shift(); id !== undefined && problem === null; id = left.shift()) {
        try {
          await work(id);
          done.push(id);
        } catch (error) {
          problem = error;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await again();
    if (problem !== null) toastProblem(words, problem);
    return done;
  };
  return async (chosen: readonly ConversationView[], work: Work, message: (count: number) => string, undo?: Work) => {
    const done = await each(chosen.map((it) => it.id), work);
    if (done.length) toast(message(done.length), undo && { label: words.undo, run: () => void each(done, undo) });
  };
}
