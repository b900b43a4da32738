import "../styles/overlays.css";

import { X } from "lucide-react";
import { useEffect, useRef } from "react";

import { closeOverlay, COMMAND } from "../state/overlay";
import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";

/** All keyboard shortcuts. */
export function Shortcuts() {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    heading.current?.focus(); // on the button, a tooltip would cover the first row
  }, []);
  const rows: [string[], string][] = [
    [[COMMAND, "K"], words.palette],
    [[COMMAND, "⇧", "O"], words.newConversation],
    [[COMMAND, "B"], words.hideSidebar],
    [["Enter"], words.send],
    [["⇧", "Enter"], words.newLine],
    [[COMMAND, "Enter"], words.steerKey],
    [["Esc"], words.stop],
    [["?"], words.shortcuts],
  ];
  return (
    <dialog
      ref={dialog}
      className="overlay shortcuts"
      aria-labelledby="shortcuts"
      onClose={closeOverlay}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2 ref={heading} id="shortcuts" tabIndex={-1}>{words.shortcuts}</h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      <dl>
        {rows.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
