import { useStore } from "@threadkeep/react";

import { confirmation } from "../state/confirmation";
import { closeOverlay, overlay } from "../state/overlay";
import { useChunk } from "../ui/use-chunk";

const loadOverlays = () => import("./overlay-chunk");

function giveUp(): void {
  closeOverlay();
  confirmation.get()?.answer(false);
}

/** The palette, the shortcuts or a question; the code that shows them is loaded when the user first asks for one. */
export function LazyOverlay() {
  const open = useStore(overlay);
  const question = useStore(confirmation);
  const overlays = useChunk(loadOverlays, open !== null || question !== null, giveUp);
  if (!overlays) return null;
  return (
    <>
      {open === "palette" && <overlays.Palette />}
      {open === "shortcuts" && <overlays.Shortcuts />}
      {question && <overlays.ConfirmDialog {...question} />}
    </>
  );
}
