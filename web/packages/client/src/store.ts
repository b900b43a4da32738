/** A value that notifies its listeners when it changes. */
export class Store<S> {
  #listeners = new Set<() => void>();

  constructor(private value: S) {}

  get = (): S => this.value;

  set(next: S): void {
    if (Object.is(next, this.value)) return;
    this.value = next;
    for (const listener of [...this.#listeners]) listener();
  }

  update(change: (value: S) => S): void {
    this.set(change(this.value));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
