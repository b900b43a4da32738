import { Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { useWords } from "../words";

/** While files are over the page the browser says so many times a second; after this they are gone. */
const GONE_AFTER_MS = 1500;

/** Takes files that are dropped anywhere on the page, and shows that it would. */
export function DropOverlay({ onDrop }: { onDrop: (data: DataTransfer) => void }) {
  const words = useWords();
  const [over, setOver] = useState(false);
  const latest = useRef(onDrop);
  latest.current = onDrop;
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isRefused = false;
    const hide = () => {
      clearTimeout(timer);
      setOver(false);
    };
    const listen = (type: "dragenter" | "dragover" | "drop", hear: (data: DataTransfer) => void) =>
      window.addEventListener(
        type,
        (event) => {
          const data = event.dataTransfer;
          if (!data?.types.includes("Files") || document.querySelector("dialog[open]")) return;
          event.preventDefault(); // the browser would open the file in place of the page
          hear(data);
        },
        { signal },
      );
    const show = () => {
      clearTimeout(timer);
      timer = setTimeout(hide, GONE_AFTER_MS);
      if (!isRefused) setOver(true);
    };
    listen("dragenter", show);
    listen("dragover", show);
    listen("drop", (data) => {
      hide();
      if (!isRefused) latest.current(data);
      isRefused = false;
    });
    window.addEventListener(
      "dragleave",
      (event) => {
        if (event.relatedTarget !== null) return;
        hide();
        isRefused = false;
      },
      { signal },
    );
    const refuse = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      hide();
      isRefused = timer !== undefined;
    };
    window.addEventListener("keydown", refuse, { signal });
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, []);
  if (!over) return null;
  return (
    <div className="drop-overlay">
      <p>
        <Upload aria-hidden />
        {words.dropToAttach}
      </p>
    </div>
  );
}
