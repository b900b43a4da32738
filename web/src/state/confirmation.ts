/** Asks before something that cannot be undone or that others will see. */

import { Store } from "@threadkeep/client";

export interface Question {
  title: string;
  text: string;
  /** The label of the button that confirms. */
  action: string;
  /** Whether it loses nothing: then the button is not red. */
  isHarmless?: boolean;
  /** What the user must type to confirm, and the label of the field. */
  typed?: { label: string; text: string };
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
