import { useChunk } from "./use-chunk";

const loadDrawer = () => import("./turn-drawer");

/** Shows the details of a turn when one asks for them; what does that is loaded then. */
export function TurnDrawerPlace({ turnId, onClose }: { turnId: string | null; onClose: () => void }) {
  const drawer = useChunk(loadDrawer, turnId !== null, onClose);
  if (!turnId || !drawer) return null;
  return <drawer.TurnDrawer key={turnId} turnId={turnId} onClose={onClose} />;
}
