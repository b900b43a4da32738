import { useEffect, useRef, useState } from "react";

import { type Attachment } from "../../state/attachments";
import { useWords, type Words } from "../../words";
import { describeFailure } from "./attachment-chip";

/** Announces to screen readers which uploads succeeded or failed, once for all files sent together. */
export function UploadAnnouncements({ attachments }: { attachments: readonly Attachment[] }) {
  const words = useWords();
  const [announcement, setAnnouncement] = useState("");
  const sent = useRef(new Set<string>());
  useEffect(() => {
    const uploading = attachments.filter((it) => it.status.state === "uploading");
    for (const { key } of uploading) sent.current.add(key);
    if (uploading.length || !sent.current.size) return;
    setAnnouncement(describeUploads(words, attachments.filter((it) => sent.current.has(it.key))));
    sent.current.clear();
  }, [attachments, words]);
  return (
    <p className="unseen" role="status">
      {announcement}
    </p>
  );
}

function describeUploads(words: Words, settled: readonly Attachment[]): string {
  const ready = settled.filter((it) => it.status.state === "ready");
  const failures = settled.flatMap(({ fileName, status }) =>
    status.state === "failed" ? [words.uploadFailed(fileName, describeFailure(words, status.problem))] : [],
  );
  const [first] = ready;
  const good = !first ? [] : ready.length === 1 ? [words.uploaded(first.fileName)] : [words.uploadedCount(ready.length)];
  return [...good, ...failures].join(" ");
}
