/** Copies of what the server said, on this device: they are shown while the server can't be reached. */
export interface Copies {
  /** Keeps what the server said at a path, if this device may and can. */
  keep(path: string, view: unknown): void;
  /** Undefined if there is none. */
  read<T>(path: string): Promise<T | undefined>;
  /** The server no longer has it, or no longer gives it to this user. */
  drop(path: string): void;
}

export const NO_COPIES: Copies = { keep: () => {}, read: async () => undefined, drop: () => {} };
