import { type Attachment } from "../../state/attachments";
import { useChunk } from "../../ui/use-chunk";

const loadTray = () => import("./attachment-tray");

/** The files of a draft; the code for them is loaded with the first one. */
export function LazyAttachments(props: { draftKey: string; attachments: readonly Attachment[] }) {
  const tray = useChunk(loadTray, props.attachments.length > 0);
  return tray && <tray.AttachmentTray {...props} />;
}
