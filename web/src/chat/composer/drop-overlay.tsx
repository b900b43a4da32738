import { Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { useEscape } from "../../hooks/use-escape";
import { useWords } from "../../words";

/** During a drag, the browser sends many events per second; after this long without one, the files have left. */
const GONE_AFTER_MS = 1500;

/** Accepts files dropped anywhere on the page, and shows so during a drag. */
export function DropOverlay({ onDrop }: { onDrop: (data: DataTransfer) => void }) {
  const words = useWords();
  const [over, setOver] = useState(false);
  const latest = useRef(onDrop);
  const refuse = useRef(() => {});
  useEscape(over, () => refuse.current());
  useEffect(() => {
    latest.current = onDrop;
  });
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isRefused = false;
    const end = () => {
      clearTimeout(timer);
      isRefused = false;
      setOver(false);
    };
    const show = () => {
      clearTimeout(timer);
      timer = setTimeout(end, GONE_AFTER_MS);
      setOver(!isRefused);
    };
    const listen = (type: "dragenter" | "dragover" | "drop", hear: (data: DataTransfer) => void) =>
      window.addEventListener(
        type,
        (event) => {
          if (!event.dataTransfer?.types.includes("Files")) return;
          event.preventDefault(); // the browser would open the file in place of the page
          if (!document.querySelector("dialog[open]")) hear(event.dataTransfer);
        },
        { signal },
      );
    listen("dragenter", show);
    listen("dragover", show);
    listen("drop", (data) => {
      const isTaken = !isRefused;
      end();
      if (isTaken) latest.current(data);
    });
    window.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget === null && end(), { signal });
    refuse.current = () => {
      isRefused = true;
      setOver(false);
    };
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
