import { type Message } from "@threadkeep/client";

import { useChunk } from "../../hooks/use-chunk";

interface Props {
  agentId: string | undefined;
  message: Message;
  isOpen: boolean;
  onRegenerate?: (model: string) => void;
  onClose: () => void;
}

const loadDrawer = () => import("./rerun-drawer");

/** Tries a turn with another model, with code that is loaded when the user first does. */
export function LazyRerunDrawer({ isOpen, onClose, ...props }: Props) {
  const drawer = useChunk(loadDrawer, isOpen, onClose);
  return isOpen && drawer && <drawer.RerunDrawer {...props} onClose={onClose} />;
}
