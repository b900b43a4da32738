import { type MeView } from "../api/schema";
import { closeOverlay, overlay } from "../state/overlay";
import { useStore } from "../state/store";
import { useChunk } from "./use-chunk";

const loadOverlays = () => import("./overlays");

/** The palette or the shortcuts when one asks for them; what shows them is loaded then. */
export function OverlayPlace({ me }: { me: MeView }) {
  const open = useStore(overlay);
  const overlays = useChunk(loadOverlays, open !== null, closeOverlay);
  if (!open || !overlays) return null;
  return open === "palette" ? <overlays.Palette me={me} /> : <overlays.Shortcuts />;
}
