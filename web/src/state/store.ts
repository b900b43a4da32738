import { useSyncExternalStore } from "react";

/** A value that tells whoever listens when it changes. */
export class Store<S> {
  #listeners = new Set<() => void>();

  constructor(private value: S) {}

  get = (): S => this.value;

  set(next: S): void {
    if (Object.is(next, this.value)) return;
    this.value = next;
    for (const tell of [...this.#listeners]) tell();
  }

  update(change: (value: S) => S): void {
    this.set(change(this.value));
  }

  subscribe = (tell: () => void): (() => void) => {
    this.#listeners.add(tell);
    return () => this.#listeners.delete(tell);
  };
}

export function useStore<S>(store: Store<S>): S {
  return useSyncExternalStore(store.subscribe, store.get);
}
