import { useStore } from "@threadkeep/react";
import { useLayoutEffect, useState } from "react";
import { createPortal } from "react-dom";

import { dismissToast, toasts, type Toast } from "../ui/toasts";

export function Toasts() {
  const all = useStore(toasts);
  const dialog = useOpenDialog(all.length > 0);
  const shown = all.map((it) => <ToastRow key={it.id} toast={it} />);
  return (
    <>
      <div className="toasts" role="status">
        {!dialog && shown}
      </div>
      {dialog &&
        createPortal(
          // An alert, since readers announce no status that appears together with its text.
          <div ref={showAbove} className="toasts" role="alert" popover="manual">
            {shown}
          </div>,
          dialog,
        )}
    </>
  );
}

function ToastRow({ toast: { id, text, action } }: { toast: Toast }) {
  return (
    <div className="toast">
      <span>{text}</span>
      {action && (
        <button
          type="button"
          onClick={() => {
            action.run();
            dismissToast(id);
          }}
        >
          {action.label}
        </button>
      )}
    </div>
  );
}

/** The dialog that the user is in: everything outside it is behind it, and can't be used or heard. */
function useOpenDialog(isNeeded: boolean): Element | null {
  const [dialog, setDialog] = useState<Element | null>(null);
  useLayoutEffect(() => {
    if (!isNeeded) return;
    const look = () => setDialog(document.activeElement?.closest(OPEN) ?? [...document.querySelectorAll(OPEN)].at(-1) ?? null);
    look();
    const changes = new MutationObserver(look);
    changes.observe(document.body, { subtree: true, childList: true, attributeFilter: ["open"] });
    return () => {
      changes.disconnect();
      setDialog(null);
    };
  }, [isNeeded]);
  return dialog;
}

const OPEN = "dialog[open]";

function showAbove(place: HTMLElement | null): void {
  place?.showPopover();
}
