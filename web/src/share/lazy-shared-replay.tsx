import type { Message } from "@threadkeep/client";

import { useChunk } from "../ui/use-chunk";

const loadReplay = () => import("./shared-replay");

interface Props {
  message: Message;
  isOpen: boolean;
  onClose: () => void;
}

/** The replay of a shared answer, with code that is loaded when the reader first asks for it. */
export function LazySharedReplay({ message, isOpen, onClose }: Props) {
  const replay = useChunk(loadReplay, isOpen, onClose);
  return isOpen && replay && <replay.SharedReplay message={message} onClose={onClose} />;
}
