import { Check, Copy, type LucideIcon } from "lucide-react";
import { useState, type RefObject } from "react";

import { useWords } from "../words";
import { toast } from "./toasts";

interface Props {
  text: string;
  /** Where it is shown typeset: programs that can take it so get it so. */
  shown?: RefObject<HTMLElement | null>;
  className?: string;
  /** What it says in place of “Copy”. */
  label?: string;
  icon?: LucideIcon;
  /** Whether its name is visible. */
  isNamed?: boolean;
}

export function CopyButton({ text, shown, className = "icon", label, icon: Icon = Copy, isNamed = false }: Props) {
  const words = useWords();
  const name = label ?? words.copy;
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await (shown?.current && "ClipboardItem" in window ? writeBoth(text, shown.current) : navigator.clipboard.writeText(text));
    } catch {
      return toast(words.copyFailed); // the browser or the user does not allow it
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  // The clipboard is missing where the page came without TLS.
  if (!("clipboard" in navigator)) return null;
  return (
    <button type="button" className={className} onClick={() => void copy()} data-tip={isNamed ? undefined : name}>
      {copied ? <Check aria-hidden /> : <Icon aria-hidden />}
      <span className={isNamed ? undefined : "unseen"} aria-live="polite">
        {copied ? words.copied : name}
      </span>
    </button>
  );
}

/** As promises: Safari allows no pause before it is called. */
function writeBoth(text: string, shown: HTMLElement): Promise<void> {
  const html = import("./rich-text").then(({ richText }) => new Blob([richText(shown)], { type: "text/html" }));
  const plain = Promise.resolve(new Blob([text], { type: "text/plain" }));
  return navigator.clipboard.write([new ClipboardItem({ "text/html": html, "text/plain": plain })]);
}
