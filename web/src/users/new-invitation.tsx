import { type NewInvitationView } from "@threadkeep/client";
import { useEffect, useRef } from "react";

import { CopyButton } from "../ui/copy-button";
import { nameOf } from "../ui/user-name";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { useUserWords } from "../words/users";

/** The link of an invitation that was just made, this once. */
export function NewInvitation({ made, onDone }: { made: NewInvitationView; onDone: () => void }) {
  const words = useWords();
  const userWords = useUserWords();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="card new-key" aria-labelledby="new-invitation">
      <h2 id="new-invitation" ref={heading} tabIndex={-1}>
        {userWords.made(nameOf({ id: made.userId }))}
      </h2>
      <p>
        {userWords.shownOnce} {userWords.until(dateTime(made.expiresAt, words.locale))}
      </p>
      <div className="secret">
        <code>{made.url}</code>
        <CopyButton text={made.url} label={userWords.copyLink} />
      </div>
      <button type="button" className="primary" onClick={onDone}>
        {userWords.saved}
      </button>
    </section>
  );
}
