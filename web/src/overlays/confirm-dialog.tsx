import "../styles/overlays.css";

import { useEffect, useRef, useState } from "react";

import { type Confirmation } from "../state/confirmation";
import { WithCode } from "../ui/with-code";
import { useWords } from "../words";

export function ConfirmDialog({ title, text, action, isHarmless, typed, answer }: Confirmation) {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const [given, setGiven] = useState("");
  const isReady = typed === undefined || given.trim() === typed.text;
  useEffect(() => dialog.current?.showModal(), []);
  // Closing it with any answer restores the focus.
  const close = (value?: "yes") => dialog.current?.close(value);
  return (
    <dialog
      ref={dialog}
      className="overlay confirm"
      role="alertdialog"
      aria-labelledby="confirm-title"
      aria-describedby="confirm-text"
      onClose={({ currentTarget }) => answer(currentTarget.returnValue === "yes")}
    >
      <h2 id="confirm-title">{title}</h2>
      <p id="confirm-text">{text}</p>
      {typed && (
        <label>
          <span>
            <WithCode text={typed.label} />
          </span>
          <input value={given} autoComplete="off" autoCapitalize="none" spellCheck={false} onChange={(event) => setGiven(event.target.value)} />
        </label>
      )}
      <footer>
        <button type="button" autoFocus onClick={() => close()}>
          {words.cancel}
        </button>
        <button type="button" className={isHarmless ? "primary" : "primary danger"} disabled={!isReady} onClick={() => close("yes")}>
          {action}
        </button>
      </footer>
    </dialog>
  );
}
