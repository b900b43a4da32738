import { Check, Copy } from "lucide-react";
import { useState } from "react";

import { useWords } from "../words";

export function CopyButton({ text, className = "icon" }: { text: string; className?: string }) {
  const words = useWords();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  // The clipboard is missing where the page came without TLS.
  if (!("clipboard" in navigator)) return null;
  return (
    <button type="button" className={className} onClick={() => void copy()} title={words.copy}>
      {copied ? <Check aria-hidden /> : <Copy aria-hidden />}
      <span className="unseen" aria-live="polite">
        {copied ? words.copied : words.copy}
      </span>
    </button>
  );
}
