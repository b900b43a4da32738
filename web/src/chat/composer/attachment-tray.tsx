import "../../styles/attachments.css";

import { type Attachment } from "../../state/attachments";
import { detach, retry } from "../../state/uploads";
import { useWords } from "../../words";
import { AttachmentChip } from "./attachment-chip";
import { UploadAnnouncements } from "./upload-announcements";

/** The files of a draft. */
export function AttachmentTray({ draftKey, attachments }: { draftKey: string; attachments: readonly Attachment[] }) {
  const words = useWords();
  const remove = (attachment: Attachment) => {
    detach(draftKey, attachment);
    document.getElementById("message")?.focus();
  };
  return (
    <>
      {attachments.length > 0 && (
        <ul className="tray" aria-label={words.attached}>
          {attachments.map((it) => (
            <AttachmentChip key={it.key} attachment={it} onRemove={() => remove(it)} onRetry={() => retry(draftKey, it)} />
          ))}
        </ul>
      )}
      <UploadAnnouncements attachments={attachments} />
    </>
  );
}
