import { useStore } from "@threadkeep/react";
import { BellRing } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { useFocusAfterClose } from "../../hooks/use-focus-after-close";
import { approvals } from "../../state/front-end";
import { useRequestWords } from "../../words/requests";
import { ApprovalsPanel } from "./approvals-panel";

/** How many requests wait for the person, wherever they are; it opens them. */
export function ApprovalsBell() {
  const requestWords = useRequestWords();
  const button = useRef<HTMLButtonElement>(null);
  const open = useStore(approvals.items);
  const [isOpen, setOpen] = useState(false);
  const isEmpty = !open.length;
  useEffect(() => {
    if (isEmpty) setOpen(false);
  }, [isEmpty]);
  // When the last one is decided, the bell is gone, too.
  useFocusAfterClose(isOpen && !isEmpty, () => button.current ?? document.getElementById("main"));
  if (isEmpty) return null;
  const label = requestWords.openRequests(open.length);
  return (
    <>
      <button
        ref={button}
        type="button"
        className="icon requests"
        aria-label={label}
        data-tip={label}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <BellRing aria-hidden />
        <span className="count" aria-hidden>
          {open.length}
        </span>
      </button>
      {isOpen && <ApprovalsPanel label={label} button={button} onClose={() => setOpen(false)} />}
    </>
  );
}
