import { Check, Copy, type LucideIcon } from "lucide-react";
import { useState } from "react";

import { toast } from "../state/toasts";
import { useWords } from "../words";

interface Props {
  text: string;
  className?: string;
  /** What it says in place of “Copy”. */
  label?: string;
  icon?: LucideIcon;
}

export function CopyButton({ text, className = "icon", label, icon: Icon = Copy }: Props) {
  const words = useWords();
  const name = label ?? words.copy;
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return toast(words.copyFailed); // the browser or the user does not allow it
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  // The clipboard is missing where the page came without TLS.
  if (!("clipboard" in navigator)) return null;
  return (
    <button type="button" className={className} onClick={() => void copy()} data-tip={name}>
      {copied ? <Check aria-hidden /> : <Icon aria-hidden />}
      <span className="unseen" aria-live="polite">
        {copied ? words.copied : name}
      </span>
    </button>
  );
}
