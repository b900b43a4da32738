import { useStore } from "@threadkeep/react";
import { useEffect } from "react";

import { toShare } from "../../state/sharing";
import { useChunk } from "../../ui/use-chunk";

const loadDialog = () => import("./share-dialog");
const close = () => toShare.set(null);

/** The dialog to share a conversation, with code that is loaded when the user first asks for it. */
export function LazyShareDialog() {
  const what = useStore(toShare);
  const dialog = useChunk(loadDialog, what !== null, close);
  useEffect(() => close, []);
  return what && dialog && <dialog.ShareDialog what={what} onClose={close} />;
}
