/** The messages between the page and the worker that colours code. */

export type Asked =
  /** Whole lines of a block of code, which follow those asked for before. */
  | { block: number; language: string; text: string }
  /** A block that is complete. */
  | { forgotten: number };

/** Characters of one colour; without one, in the text's. */
export type Run = readonly [text: string, colour?: string];
export type Line = readonly Run[];

export interface Answered {
  block: number;
  /** Null where the language is unknown or its code could not be loaded. */
  lines: Line[] | null;
}
