/** So often at most: a text that grows in larger steps reads as well, and leaves the machine to others. */
const SHOW_EVERY_MS = 40;

/** What arrives hundreds of times a second, handed on in batches, each with a frame of the screen. */
export class Paced<T> {
  #waiting: T[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly show: (items: T[]) => void,
    /** The minimum wait if showing takes long. */
    private readonly leastMs: () => number = () => 0,
  ) {}

  add(items: readonly T[]): void {
    this.#waiting.push(...items);
    this.#timer ??= setTimeout(() => this.#atNextFrame(), Math.max(SHOW_EVERY_MS, this.leastMs()));
  }

  /** Shows the rest immediately. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const items = this.#waiting;
    this.#waiting = [];
    if (items.length) this.show(items);
  }

  #atNextFrame(): void {
    // A page that is not seen has no frames.
    if (document.hidden) this.flush();
    else requestAnimationFrame(() => this.flush());
  }
}
