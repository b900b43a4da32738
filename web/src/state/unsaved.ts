/** Unsaved form input: the user must confirm before leaving the page with it. */

import { Store } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect, useId } from "react";

import { type Words } from "../words";
import { confirmed } from "./confirmation";
import { askBeforeLeaving } from "./route";

/** The forms with unsaved changes, each with the tab it is on. */
const forms = new Store<ReadonlyMap<string, string>>(new Map());

/** The browser's own question, which is all it allows when its tab is closed. */
const warn = (event: BeforeUnloadEvent) => event.preventDefault();

function setForms(all: ReadonlyMap<string, string>): void {
  forms.set(all);
  // Only while it is needed: such a listener keeps browsers from restoring the page quickly.
  if (all.size) window.addEventListener("beforeunload", warn);
  else window.removeEventListener("beforeunload", warn);
}

function remove(form: string): void {
  if (forms.get().has(form)) setForms(new Map([...forms.get()].filter(([id]) => id !== form)));
}

/** Says that a form on this tab has unsaved changes, for as long as it is shown. */
export function useUnsaved(tab: string, isChanged: boolean): void {
  const form = useId();
  useEffect(() => {
    if (!isChanged) return;
    setForms(new Map(forms.get()).set(form, tab));
    return () => remove(form);
  }, [form, tab, isChanged]);
}

/** The tabs with unsaved changes. */
export function useUnsavedTabs(): ReadonlySet<string> {
  return new Set(useStore(forms).values());
}

/** For when the input was saved or discarded, and the page navigates by itself. */
export function forgetUnsaved(): void {
  setForms(new Map());
}

/** While this is used, leaving a page with unsaved changes needs confirmation. */
export function useLeaveQuestion(words: Words): void {
  useEffect(
    () =>
      askBeforeLeaving(() => {
        const open = [...forms.get().values()];
        if (!open.length) return null;
        const isUpload = open.every((tab) => tab === "documents");
        return confirmed(
          isUpload
            ? { title: words.stopUploads, text: words.stopUploadsText, action: words.stopUploadsAction }
            : { title: words.discardChanges, text: words.discardText, action: words.discard },
        );
      }),
    [words],
  );
}
