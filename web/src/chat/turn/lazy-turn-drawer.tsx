import { useChunk } from "../../ui/use-chunk";

const loadDrawer = () => import("./turn-drawer");

interface Props {
  conversationId: string;
  turnId: string | undefined;
  onClose: () => void;
}

/** Shows the details of a turn, with code that is loaded when the user first asks for them. */
export function LazyTurnDrawer({ conversationId, turnId, onClose }: Props) {
  const drawer = useChunk(loadDrawer, turnId !== undefined, onClose);
  if (!turnId || !drawer) return null;
  return <drawer.TurnDrawer key={turnId} conversationId={conversationId} turnId={turnId} onClose={onClose} />;
}
