import "../../styles/overlays.css";
import "../../styles/share-dialog.css";

import { type NewShareView } from "@threadkeep/client";
import { EyeOff, X } from "lucide-react";
import { useEffect, useRef, useState, type FormEvent } from "react";

import { api } from "../../api/api";
import { isLocal } from "../../api/api";
import { sharing, type ToShare } from "../../state/sharing";
import { Field } from "../../ui/field";
import { IconButton } from "../../ui/icon-button";
import { toastProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { useShareWords } from "../../words/shares";
import { NewLink } from "./new-link";
import { ShareList } from "./share-list";
import { useShares } from "./use-shares";

const isThisComputer = () => isLocal && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
const DAYS = [1, 7, 30];
const DAY_MS = 24 * 60 * 60 * 1000;

/** Shares a conversation by a link, and shows the links that exist. */
export function ShareDialog({ what, onClose }: { what: ToShare; onClose: () => void }) {
  const words = useWords();
  const shareWords = useShareWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const { shares, add, revoke } = useShares(what.conversationId);
  const [made, setMade] = useState<NewShareView | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
    heading.current?.focus();
  }, []);
  const create = async (tools: boolean, days: number) => {
    const expiresAt = days ? new Date(Date.now() + days * DAY_MS).toISOString() : null;
    const body = { messageId: what.messageId ?? null, tools, expiresAt };
    const share = await api.send<NewShareView>("POST", `/api/conversations/${what.conversationId}/shares`, body);
    add(share);
    setMade(share);
  };
  return (
    <dialog
      ref={dialog}
      className="overlay share-dialog"
      aria-labelledby="share-title"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2 id="share-title" ref={heading} tabIndex={-1}>
          {shareWords.title}
        </h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      {made ? (
        <NewLink share={made} onAnother={() => setMade(null)} />
      ) : (
        <Choices isWhole={what.messageId === undefined} onCreate={create} />
      )}
      <ShareList
        shares={shares}
        onRevoke={async (share) => {
          await revoke(share);
          if (share.id === made?.id) setMade(null);
        }}
      />
    </dialog>
  );
}

function Choices({ isWhole, onCreate }: { isWhole: boolean; onCreate: (tools: boolean, days: number) => Promise<void> }) {
  const words = useWords();
  const shareWords = useShareWords();
  const [tools, setTools] = useState(false);
  const [days, setDays] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await onCreate(tools, days);
    } catch (error) {
      toastProblem(words, error);
      setBusy(false);
    }
  };
  const options = [
    { value: false, label: shareWords.textOnly, hint: shareWords.textOnlyHint },
    { value: true, label: shareWords.withTools, hint: shareWords.withToolsHint },
  ];
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p className="intro">{isWhole ? shareWords.intro : shareWords.introHere}</p>
      <fieldset>
        <legend>{shareWords.show}</legend>
        {options.map(({ value, label, hint }) => (
          <label key={label} className="option">
            <input type="radio" name="tools" checked={tools === value} onChange={() => setTools(value)} />
            <span>
              {label}
              <small>{hint}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <Field label={shareWords.expires}>
        <select value={days} onChange={(event) => setDays(Number(event.target.value))}>
          <option value={0}>{shareWords.never}</option>
          {DAYS.map((it) => (
            <option key={it} value={it}>
              {shareWords.inDays(it)}
            </option>
          ))}
        </select>
      </Field>
      <p className="hidden-parts">
        <EyeOff aria-hidden />
        <span>
          {isThisComputer() ? shareWords.whoHere : sharing === "anyone" ? shareWords.whoAnyone : shareWords.whoUsers} {shareWords.hidden}
        </span>
      </p>
      <footer>
        <button type="submit" className="primary" disabled={isBusy}>
          {shareWords.create}
        </button>
      </footer>
    </form>
  );
}
