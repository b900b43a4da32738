import { useStore } from "@threadkeep/react";

import { minute } from "../state/minute";
import { useWords } from "../words";
import { dateTime, relativeTime } from "../words/format";

/** A message's time: relative, and exact on hover. */
export function MessageTime({ at }: { at: string }) {
  const words = useWords();
  const now = useStore(minute);
  return (
    <time className="when" dateTime={at} title={dateTime(at, words.locale)}>
      {relativeTime(at, words.locale, now) || words.justNow}
    </time>
  );
}
