/** Asks before something that cannot be undone. */

import { Store } from "./store";

export interface Question {
  title: string;
  text: string;
  /** What the button says that does it. */
  action: string;
}

export interface Confirmation extends Question {
  answer: (yes: boolean) => void;
}

export const confirmation = new Store<Confirmation | null>(null);

/** Whether the user said yes; closing the dialog is a no. */
export function confirmed(question: Question): Promise<boolean> {
  confirmation.get()?.answer(false);
  return new Promise((resolve) => {
    const answer = (yes: boolean) => {
      confirmation.set(null);
      resolve(yes);
    };
    confirmation.set({ ...question, answer });
  });
}
