import { useEffect, useRef } from "react";

import { toast } from "../../ui/toasts";
import { useWords } from "../../words";

let uploads: Promise<typeof import("../../state/uploads")> | null = null;

/** The uploader, loaded once, so that files keep their order. */
function loadUploads() {
  return (uploads ??= import("../../state/uploads").catch((error: unknown) => {
    uploads = null;
    throw error;
  }));
}

/** Adds to a draft what is chosen, pasted or dropped. */
export function useAttaching(draftKey: string, disabled: boolean) {
  const words = useWords();
  const add = async (files: readonly File[]) => {
    if (disabled || !files.length) return;
    // On a phone, the keyboard would cover the added files.
    if (matchMedia("(pointer: fine)").matches) document.getElementById("message")?.focus();
    try {
      const { MOST_FILES, attach } = await loadUploads();
      if (attach(draftKey, files) > 0) toast(words.tooManyFiles(MOST_FILES));
    } catch {
      toast(words.serverUnreachable);
    }
  };
  const drop = (data: DataTransfer) => {
    const files = filesIn(data);
    if (files.length < data.files.length) toast(words.noFolders);
    void add(files);
  };
  const latest = useRef(add);
  useEffect(() => {
    latest.current = add;
  });
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const files = pasted(event);
      if (!files.length) return;
      event.preventDefault();
      void latest.current(files);
    };
    window.addEventListener("paste", paste);
    return () => window.removeEventListener("paste", paste);
  }, []);
  return { add, drop };
}

/** The files of a drop, without folders, whose content browsers don't provide. */
function filesIn(data: DataTransfer): File[] {
  const items = [...data.items].filter((it) => it.kind === "file");
  if (!items.length) return [...data.files];
  return items.flatMap((it) => (it.webkitGetAsEntry?.()?.isDirectory ? [] : (it.getAsFile() ?? [])));
}

/** Pasted files: spreadsheets and word processors add a picture to a text, which is what the user means. */
function pasted({ target, clipboardData }: ClipboardEvent): File[] {
  const isElsewhere = target instanceof HTMLElement && target.id !== "message" && target.matches("input, textarea, dialog *");
  const isText = clipboardData?.types.includes("text/html") && clipboardData.getData("text/plain").trim();
  return isElsewhere || isText ? [] : [...(clipboardData?.files ?? [])];
}
