import "../styles/account-rows.css";

import { type PageView_SessionView, type SessionView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useRef } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useRowFocus } from "../hooks/use-row-focus";
import { confirmed } from "../state/confirmation";
import { minute } from "../state/minute";
import { SESSIONS } from "../state/session";
import { useSignOut } from "../state/use-sign-out";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { dateTime, relativeTime } from "../words/format";
import { useSessionWords } from "../words/sessions";
import { deviceName } from "./device-name";

const INVITATION = "invitation";
const OIDC = "oidc:";

const readSessions = async (signal: AbortSignal) => (await api.get<PageView_SessionView>(SESSIONS, {}, signal)).items;

/** The browsers in which the user is signed in; nothing where a token or the application signs them in. */
export function SessionsSection() {
  const words = useWords();
  const sessionWords = useSessionWords();
  const signOut = useSignOut();
  const { loaded, again } = useLoaded(readSessions);
  if (loaded.state === "loading" || (loaded.state === "ready" && !loaded.value.length)) return null;
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
          <SessionList sessions={loaded.value} onSignOutHere={() => signOut()} onChanged={() => void again()} />
          <button type="button" className="danger" onClick={() => void endAll()}>
            {sessionWords.everywhere}
          </button>
        </>
      )}
    </section>
  );
}

interface Props {
  sessions: readonly SessionView[];
  onSignOutHere: () => void;
  onChanged: () => void;
}

function SessionList({ sessions, onSignOutHere, onChanged }: Props) {
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
              <SessionFacts session={session} />
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

function SessionFacts({ session: { way, createdAt, lastUsedAt } }: { session: SessionView }) {
  const words = useWords();
  const sessionWords = useSessionWords();
  const now = useStore(minute);
  const used = relativeTime(lastUsedAt, words.locale, now);
  const by = way === INVITATION ? sessionWords.byInvitation : sessionWords.by(way.startsWith(OIDC) ? way.slice(OIDC.length) : way);
  const facts = [by, sessionWords.since(dateTime(createdAt, words.locale)), used ? sessionWords.lastUsed(used) : sessionWords.justNow];
  return <p className="about">{facts.join(" · ")}</p>;
}
