import { type ShareView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { confirmed } from "../../state/confirmation";
import { minute } from "../../state/minute";
import { toastProblem } from "../../ui/problem-bar";
import { toast } from "../../ui/toasts";
import { useWords } from "../../words";
import { dateTime } from "../../words/format";
import { useShareWords } from "../../words/shares";

interface Props {
  shares: readonly ShareView[];
  onRevoke: (share: ShareView) => Promise<void>;
}

/** The links to a conversation; each can be revoked. */
export function ShareList({ shares, onRevoke }: Props) {
  const words = useWords();
  const shareWords = useShareWords();
  const now = useStore(minute);
  if (!shares.length) return null;
  const revoke = async (share: ShareView) => {
    if (!(await confirmed({ title: shareWords.revokeSure, text: shareWords.revokeText, action: shareWords.revoke }))) return;
    try {
      await onRevoke(share);
      toast(shareWords.revoked);
      document.getElementById("share-title")?.focus(); // the button is gone
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const about = (share: ShareView) => {
    const { expiresAt } = share;
    const isOver = expiresAt !== null && Date.parse(expiresAt) <= now;
    return [
      shareWords.messages(share.messageCount),
      share.tools ? shareWords.toolsToo : shareWords.onlyText,
      isOver ? shareWords.expired : expiresAt && shareWords.expiresAt(dateTime(expiresAt, words.locale)),
    ];
  };
  return (
    <section className="share-list" aria-labelledby="share-links">
      <h3 id="share-links">{shareWords.links}</h3>
      <ul>
        {shares.map((share) => {
          const time = dateTime(share.createdAt, words.locale);
          return (
            <li key={share.id}>
              <p>
                {shareWords.sharedAt(time)}
                <small>{about(share).filter(Boolean).join(" · ")}</small>
              </p>
              <button type="button" className="quiet danger" aria-label={shareWords.revokeIt(time)} onClick={() => void revoke(share)}>
                {shareWords.revoke}
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
