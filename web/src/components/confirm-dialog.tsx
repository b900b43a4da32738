import "../styles/overlays.css";

import { useEffect, useRef } from "react";

import { type Confirmation } from "../state/confirmation";
import { useWords } from "../words";

export function ConfirmDialog({ title, text, action, isHarmless, answer }: Confirmation) {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      className="overlay confirm"
      role="alertdialog"
      aria-labelledby="confirm-title"
      aria-describedby="confirm-text"
      onClose={() => answer(false)}
    >
      <h2 id="confirm-title">{title}</h2>
      <p id="confirm-text">{text}</p>
      <footer>
        <button type="button" autoFocus onClick={() => dialog.current?.close()}>
          {words.cancel}
        </button>
        <button type="button" className={isHarmless ? "primary" : "primary danger"} onClick={() => answer(true)}>
          {action}
        </button>
      </footer>
    </dialog>
  );
}
