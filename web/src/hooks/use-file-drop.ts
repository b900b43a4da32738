import { useEffect, useState, type DragEvent } from "react";

/** A target for dropped files: whether some are over it, and its handlers. */
export function useFileDrop(take: (files: readonly File[]) => void) {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    // If a file is dropped outside the target, the browser would open it in place of the page.
    const ignore = (event: globalThis.DragEvent) => event.dataTransfer?.types.includes("Files") && event.preventDefault();
    window.addEventListener("dragover", ignore, { signal: leaving.signal });
    window.addEventListener("drop", ignore, { signal: leaving.signal });
    return () => leaving.abort();
  }, []);
  const onDragOver = (event: DragEvent) => {
    event.preventDefault();
    setOver(event.dataTransfer.types.includes("Files"));
  };
  const onDragLeave = (event: DragEvent) => {
    if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take([...event.dataTransfer.files]);
  };
  return { isOver, target: { onDragOver, onDragLeave, onDrop } };
}
