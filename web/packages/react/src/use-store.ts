import { type Store } from "@threadkeep/client";
import { useSyncExternalStore } from "react";

/** A part of a store's value: the component renders again only when that part changes. `select` must not build a new object. */
export function useSelected<S, T>(store: Store<S>, select: (value: S) => T): T {
  return useSyncExternalStore(store.subscribe, () => select(store.get()));
}

export function useStore<S>(store: Store<S>): S {
  return useSyncExternalStore(store.subscribe, store.get);
}
