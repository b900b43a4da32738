import { minute } from "../state/minute";
import { useStore } from "../state/store";
import { useWords } from "../words";
import { dateTime, relativeTime } from "../words/format";

/** When a message was said: as people say it, and exactly when the user points at it. */
export function MessageTime({ at }: { at: string }) {
  const words = useWords();
  const now = useStore(minute);
  return (
    <time className="when" dateTime={at} title={dateTime(at, words.locale)}>
      {relativeTime(at, words.locale, now) || words.justNow}
    </time>
  );
}
