import { type NewShareView } from "@threadkeep/client";
import { Link } from "lucide-react";
import { useEffect, useId, useRef } from "react";

import { api } from "../../api/api";
import { CopyButton } from "../../ui/copy-button";
import { useShareWords } from "../../words/shares";

/** A link that was just made, this once. */
export function NewLink({ share, onAnother }: { share: NewShareView; onAnother: () => void }) {
  const shareWords = useShareWords();
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const url = api.url(`/s/${share.token}`).href;
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <section className="new-link">
      <label htmlFor={id}>{shareWords.created}</label>
      <div className="link-row">
        <input id={id} ref={field} readOnly value={url} onFocus={({ currentTarget }) => currentTarget.select()} />
        <CopyButton text={url} className="primary" label={shareWords.copyLink} icon={Link} isNamed />
      </div>
      <p className="hint" role="status">
        {shareWords.shownOnce}
      </p>
      <footer>
        <button type="button" className="quiet" onClick={onAnother}>
          {shareWords.another}
        </button>
        <a href={url} target="_blank" rel="noopener">
          {shareWords.open}
        </a>
      </footer>
    </section>
  );
}
