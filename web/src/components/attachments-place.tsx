import { type Attachment } from "../state/attachments";
import { useChunk } from "./use-chunk";

const loadTray = () => import("./attachment-tray");

/** The files of a draft; what shows and sends them is loaded with the first. */
export function AttachmentsPlace(props: { draftKey: string; attachments: readonly Attachment[] }) {
  const tray = useChunk(loadTray, props.attachments.length > 0);
  return tray && <tray.AttachmentTray {...props} />;
}
