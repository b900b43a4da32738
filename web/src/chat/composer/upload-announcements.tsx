import { useEffect, useRef, useState } from "react";

import { type Attachment } from "../../state/attachments";
import { useWords, type Words } from "../../words";
import { describeFailure } from "./attachment-chip";

/** Tells users who do not see the files what became of them, once for all that were sent together. */
export function UploadAnnouncements({ attachments }: { attachments: readonly Attachment[] }) {
  const words = useWords();
  const [news, setNews] = useState("");
  const sent = useRef(new Set<string>());
  useEffect(() => {
    const uploading = attachments.filter((it) => it.status.state === "uploading");
    for (const { key } of uploading) sent.current.add(key);
    if (uploading.length || !sent.current.size) return;
    setNews(describeUploads(words, attachments.filter((it) => sent.current.has(it.key))));
    sent.current.clear();
  }, [attachments, words]);
  return (
    <p className="unseen" role="status">
      {news}
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
