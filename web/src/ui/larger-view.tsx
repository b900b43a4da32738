import "../styles/previews.css";

import { X } from "lucide-react";
import { useEffect, useRef, type ReactNode } from "react";
import { createPortal } from "react-dom";

import { useWords } from "../words";
import { IconButton } from "./icon-button";

interface Props {
  title: string;
  /** Buttons beside the one that closes it. */
  actions?: ReactNode;
  onClose: () => void;
  children: ReactNode;
}

/** Something from an answer, with the whole window for it. */
export function LargerView({ title, actions, onClose, children }: Props) {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // Not within the answer: neither its type nor its being read out concern this.
  return createPortal(
    <dialog
      ref={dialog}
      className="larger"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2>{title}</h2>
        {actions}
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      <div className="content">{children}</div>
    </dialog>,
    document.body,
  );
}
