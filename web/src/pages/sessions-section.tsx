import "../styles/account-rows.css";
import "../styles/keys.css";

import { type PageView_SessionView, type SessionView, type SignInLinkView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect, useRef, useState } from "react";

import { api } from "../api/api";
import { readSignIn } from "../api/sign-in-ways";
import { useLoaded } from "../api/use-loaded";
import { useRowFocus } from "../hooks/use-row-focus";
import { confirmed } from "../state/confirmation";
import { minute } from "../state/minute";
import { SESSIONS } from "../state/session";
import { useSignOut } from "../state/use-sign-out";
import { CopyButton } from "../ui/copy-button";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { dateTime, relativeTime } from "../words/format";
import { useSessionWords } from "../words/sessions";
import { deviceName } from "./device-name";

const INVITATION = "invitation";
const OIDC = "oidc:";

interface SignedIn {
  sessions: readonly SessionView[];
  /** What the providers are called, by their names. */
  titles: ReadonlyMap<string, string>;
}

async function readSessions(signal: AbortSignal): Promise<SignedIn> {
  const { items } = await api.get<PageView_SessionView>(SESSIONS, {}, signal);
  const isByProvider = items.some(({ way }) => way.startsWith(OIDC));
  const ways = isByProvider ? (await readSignIn(signal)).ways : [];
  return { sessions: items, titles: new Map(ways.map(({ name, title }) => [name, title])) };
}

/** Where invitations sign people in, a link for another browser; a provider lets people in anywhere. */
function OtherBrowser({ onDone }: { onDone: () => void }) {
  const words = useWords();
  const sessionWords = useSessionWords();
  const [link, setLink] = useState<SignInLinkView | null>(null);
  const [isMaking, setMaking] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [link]);
  const make = async () => {
    setMaking(true);
    try {
      setLink(await api.send<SignInLinkView>("POST", `${SESSIONS}/links`));
    } catch (error) {
      toastProblem(words, error);
    }
    setMaking(false);
  };
  if (link === null)
    return (
      <button type="button" disabled={isMaking} onClick={() => void make()}>
        {sessionWords.otherBrowser}
      </button>
    );
  const done = () => {
    setLink(null);
    onDone(); // the other browser may have signed in
  };
  return (
    <section className="card new-key" aria-labelledby="sign-in-link">
      <h3 id="sign-in-link" ref={heading} tabIndex={-1}>
        {sessionWords.linkTitle}
      </h3>
      <p>{sessionWords.linkText(dateTime(link.expiresAt, words.locale))}</p>
      <div className="secret">
        <code>{link.url}</code>
        <CopyButton text={link.url} label={sessionWords.copyLink} />
      </div>
      <button type="button" className="primary" onClick={done}>
        {sessionWords.done}
      </button>
    </section>
  );
}

/** The browsers in which the user is signed in; nothing where a token or the application signs them in. */
export function SessionsSection() {
  const words = useWords();
  const sessionWords = useSessionWords();
  const signOut = useSignOut();
  const { loaded, again } = useLoaded(readSessions);
  if (loaded.state === "loading" || (loaded.state === "ready" && !loaded.value.sessions.length)) return null;
  const endAll = async () => {
    const question = { title: `${sessionWords.everywhere}?`, text: sessionWords.everywhereText, action: sessionWords.everywhere };
    if (await confirmed(question)) signOut(true);
  };
  return (
    <section aria-labelledby="settings-sessions">
      <h2 id="settings-sessions">{sessionWords.title}</h2>
      {loaded.state === "failed" ? (
        <p className="hint wrong" role="alert">
          {describeProblem(words, loaded.problem)}{" "}
          <button type="button" className="link" onClick={() => void again()}>
            {words.retry}
          </button>
        </p>
      ) : (
        <>
          <p className="hint">{sessionWords.intro}</p>
          <SessionList {...loaded.value} onSignOutHere={() => signOut()} onChanged={() => void again()} />
          {loaded.value.sessions.some((it) => it.current && it.way === INVITATION) && <OtherBrowser onDone={() => void again()} />}
          <button type="button" className="danger" onClick={() => void endAll()}>
            {sessionWords.everywhere}
          </button>
        </>
      )}
    </section>
  );
}

interface Props extends SignedIn {
  onSignOutHere: () => void;
  onChanged: () => void;
}

function SessionList({ sessions, titles, onSignOutHere, onChanged }: Props) {
  const words = useWords();
  const sessionWords = useSessionWords();
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  const end = async ({ id }: SessionView, name: string) => {
    try {
      await api.send("DELETE", `${SESSIONS}/${id}`);
      toast(sessionWords.signedOut(name));
    } catch (error) {
      toastProblem(words, error);
    }
    onChanged();
  };
  return (
    <ul ref={rows} className="cards" aria-label={sessionWords.title}>
      {sessions.map((session) => {
        const name = deviceName(session.device, sessionWords);
        return (
          <li key={session.id} className="card account-row">
            <div>
              <h3 title={session.device}>
                {name} {session.current && <span className="badge">{sessionWords.here}</span>}
              </h3>
              <SessionFacts session={session} titles={titles} />
            </div>
            <button
              type="button"
              aria-label={sessionWords.signOutThere(name)}
              onClick={() => (session.current ? onSignOutHere() : void end(session, name))}
            >
              {words.signOut}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function SessionFacts({ session: { way, createdAt, lastUsedAt }, titles }: { session: SessionView; titles: SignedIn["titles"] }) {
  const words = useWords();
  const sessionWords = useSessionWords();
  const now = useStore(minute);
  const used = relativeTime(lastUsedAt, words.locale, now);
  const provider = way.startsWith(OIDC) ? way.slice(OIDC.length) : way;
  const by = way === INVITATION ? sessionWords.byInvitation : sessionWords.by(titles.get(provider) ?? provider);
  const facts = [by, sessionWords.since(dateTime(createdAt, words.locale)), used ? sessionWords.lastUsed(used) : sessionWords.justNow];
  return <p className="about">{facts.join(" · ")}</p>;
}
