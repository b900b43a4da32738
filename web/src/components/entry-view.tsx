import { memo, useState } from "react";

import { type Entry } from "../thread/entries";
import { type Thread } from "../thread/thread";
import { type LiveReply } from "../turn/fold";
import { BriefingCard } from "./briefing-card";
import { Reply } from "./reply";
import { UserMessage } from "./user-message";
import { VersionPicker } from "./version-picker";

interface Props {
  entry: Entry;
  live: LiveReply | null;
  isLast: boolean;
  /** Whether one came for it. */
  isWanted: boolean;
  running: boolean;
  thread: Thread;
  onDetails: (turnId: string) => void;
}

/** One entry of a conversation. */
export const EntryView = memo(
  function EntryView({ entry, live, isLast, isWanted, running, thread, onDetails }: Props) {
    const { versions, current } = entry;
    const [chosen, choose] = useState<number | null>(null);
    const at = chosen ?? current;
    const message = versions[at] ?? versions[current]!;
    const [first] = message.parts;
    const isCurrent = at === current;
    return (
      <div className={isWanted ? "entry wanted" : "entry"} data-key={entry.key} tabIndex={isWanted ? -1 : undefined}>
        {first?.type === "card" ? (
          <BriefingCard card={first} />
        ) : message.role === "user" ? (
          <UserMessage message={message} />
        ) : (
          <Reply
            message={message}
            live={isCurrent ? live : null}
            isLast={isLast && isCurrent}
            running={running && isCurrent}
            onRegenerate={() => {
              choose(null);
              void thread.regenerate();
            }}
            onContinue={(text) => void thread.send(text)}
            onDetails={onDetails}
          >
            {versions.length > 1 && <VersionPicker index={at} count={versions.length} onChoose={choose} />}
          </Reply>
        )}
      </div>
    );
  },
  (before, after) =>
    before.live === after.live &&
    before.isLast === after.isLast &&
    before.isWanted === after.isWanted &&
    before.running === after.running &&
    before.thread === after.thread &&
    before.entry.current === after.entry.current &&
    before.entry.versions.length === after.entry.versions.length &&
    before.entry.versions.every((it, index) => it === after.entry.versions[index]),
);
