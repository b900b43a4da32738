/** Text that grows in larger steps reads as well, and costs less to draw. */
const SHOW_EVERY_MS = 40;

export interface BatchOptions {
  /** The least time between two batches: longer if showing them takes long. */
  leastMs?: () => number;
  /** Calls `draw` when the screen is drawn next. */
  atNextFrame?: (draw: () => void) => void;
}

/** Collects what arrives hundreds of times a second and shows it in batches. */
export class Batches<T> {
  #waiting: T[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly show: (items: T[]) => void,
    private readonly options: BatchOptions = {},
  ) {}

  add(items: readonly T[]): void {
    const { leastMs = () => 0, atNextFrame = (draw) => draw() } = this.options;
    this.#waiting.push(...items);
    this.#timer ??= setTimeout(() => atNextFrame(() => this.flush()), Math.max(SHOW_EVERY_MS, leastMs()));
  }

  /** Shows the rest immediately. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const items = this.#waiting;
    this.#waiting = [];
    if (items.length) this.show(items);
  }
}
