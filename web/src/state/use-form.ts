import { ApiError } from "@threadkeep/client";
import { useState } from "react";

import { useFaultWords, type FaultWords } from "../words/faults";
import { useUnsaved } from "./unsaved";

export interface Fault<T> {
  field: keyof T;
  message: string;
}

/** A form over the server's values: what is typed stays on top, even when those change. */
export function useForm<T extends object>(tab: string, kept: T) {
  const faultWords = useFaultWords();
  const [typed, setTyped] = useState<Partial<T>>({});
  const [fault, setFault] = useState<Fault<T> | null>(null);
  const [isSaving, setSaving] = useState(false);
  const values: T = { ...kept, ...typed };
  const names = Object.keys(typed) as (keyof T)[];
  const changes = Object.fromEntries(
    names.filter((it) => !isSame(typed[it], kept[it])).map((it) => [it, typed[it]]),
  ) as Partial<T>;
  const isChanged = Object.keys(changes).length > 0;
  useUnsaved(tab, isChanged);
  return {
    values,
    changes,
    isChanged,
    isSaving,
    faultOf: (field: keyof T) => (fault?.field === field ? fault.message : undefined),
    set: <K extends keyof T>(field: K, value: T[K]) => {
      setTyped((all) => ({ ...all, [field]: value }));
      if (fault?.field === field) setFault(null);
    },
    /** Saves; shows an error that names a field of the form there, and throws any other. */
    save: async (work: () => Promise<unknown>) => {
      setSaving(true);
      setFault(null);
      try {
        await work();
        // Keep what was typed while it was being saved.
        setTyped((now) => Object.fromEntries(Object.entries(now).filter(([it, value]) => value !== typed[it as keyof T])) as Partial<T>);
      } catch (error) {
        const field = fieldOf(error, Object.keys(values)) as keyof T | null;
        if (field === null) throw error;
        setFault({ field, message: describeFault((error as ApiError).message, faultWords) });
      } finally {
        setSaving(false);
      }
    },
  };
}

/** Lists and objects are the same if what is in them is. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
}

/** The field that an error is about: the last name of its path that the form has. */
export function fieldOf(error: unknown, fields: readonly string[]): string | null {
  if (!(error instanceof ApiError) || error.param === null) return null;
  return error.param.split(".").findLast((it) => fields.includes(it)) ?? null;
}

/** The server's messages for numbers out of range are written for programmers. */
function describeFault(message: string, faultWords: FaultWords): string {
  const [, sign, bound] = /^Expected `[^`]+` (<=|>=) (-?[\d.]*\d)\.?$/.exec(message) ?? [];
  if (bound === undefined) return message;
  return sign === "<=" ? faultWords.most(Number(bound)) : faultWords.least(Number(bound));
}
