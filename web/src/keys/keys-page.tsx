import "../styles/keys.css";

import { type KeyView, type MeView, type NewKeyView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { ChevronRight } from "lucide-react";
import { useRef, useState } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { TopBar } from "../chat/top-bar";
import { useRowFocus } from "../hooks/use-row-focus";
import { agents, listedAgentName, loadUnknownAgents } from "../state/agents";
import { confirmed } from "../state/confirmation";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { useKeyWords } from "../words/keys";
import { Connect } from "./connect";
import { KeyForm } from "./key-form";
import { NewKey } from "./new-key";
import { PLACEHOLDER } from "./snippets";

interface ListedKey extends KeyView {
  isExpired: boolean;
}

async function readKeys(signal: AbortSignal): Promise<ListedKey[]> {
  const { items } = await api.get<{ items: KeyView[] }>("/api/keys", {}, signal);
  loadUnknownAgents(items.flatMap((it) => it.agents ?? []));
  const now = Date.now();
  return items.map((it) => ({ ...it, isExpired: it.expiresAt !== null && Date.parse(it.expiresAt) <= now }));
}

/** The user's API keys: to make, to look at, to revoke. */
export function KeysPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const words = useWords();
  const keyWords = useKeyWords();
  const { loaded, again } = useLoaded(readKeys);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<NewKeyView | null>(null);
  return (
    <div className="page">
      <TopBar title={keyWords.title} onMenu={onMenu} />
      <div className="content keys">
        <p className="hint">{keyWords.intro}</p>
        {made ? (
          <NewKey made={made} onDone={() => setMade(null)} />
        ) : isMaking ? (
          <KeyForm
            canAct={me.role === "admin"}
            onCancel={() => setMaking(false)}
            onMade={(key) => {
              setMade(key);
              setMaking(false);
              void again();
            }}
          />
        ) : (
          <button type="button" className="primary" onClick={() => setMaking(true)}>
            {keyWords.create}
          </button>
        )}
        {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
        {loaded.state === "failed" && (
          <p className="hint wrong" role="alert">
            {describeProblem(words, loaded.problem)}{" "}
            <button type="button" className="link" onClick={() => void again()}>
              {words.retry}
            </button>
          </p>
        )}
        {loaded.state === "ready" &&
          (loaded.value.length ? (
            <>
              <KeyList keys={loaded.value} onChanged={() => void again()} />
              {!made && <ConnectLater />}
            </>
          ) : (
            !made && !isMaking && <p className="nothing">{keyWords.nothing}</p>
          ))}
      </div>
    </div>
  );
}

/** The same as with a new key, for somebody who has saved theirs. */
function ConnectLater() {
  const keyWords = useKeyWords();
  return (
    <details className="card connect-later">
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{keyWords.connect}</span>
      </summary>
      <p className="hint">{keyWords.putYourKey(PLACEHOLDER)}</p>
      <Connect made={{ key: PLACEHOLDER, scopes: ["chat"], agents: null }} />
    </details>
  );
}

function KeyList({ keys, onChanged }: { keys: readonly ListedKey[]; onChanged: () => void }) {
  const words = useWords();
  const keyWords = useKeyWords();
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  const revoke = async ({ id, name }: KeyView) => {
    if (!(await confirmed({ title: keyWords.revokeIt(name), text: keyWords.revokeText, action: keyWords.revoke }))) return;
    try {
      await api.send("DELETE", `/api/keys/${id}`);
      toast(keyWords.revoked(name));
    } catch (error) {
      toastProblem(words, error);
    }
    onChanged();
  };
  return (
    <ul ref={rows} className="cards" aria-label={keyWords.title}>
      {keys.map((key) => (
        <li key={key.id} className="card key">
          <div>
            <h2 dir="auto">{key.name}</h2>
            <p>
              <code>{key.prefix}…</code> · {key.scopes.map((it) => keyWords.scopes[it]).join(", ")}
            </p>
            <KeyFacts value={key} />
          </div>
          <button type="button" className="danger" aria-label={keyWords.revokeIt(key.name)} onClick={() => void revoke(key)}>
            {keyWords.revoke}
          </button>
        </li>
      ))}
    </ul>
  );
}

function KeyFacts({ value }: { value: ListedKey }) {
  const words = useWords();
  const keyWords = useKeyWords();
  const all = useStore(agents);
  const time = (at: string) => dateTime(at, words.locale);
  const facts = [
    value.lastUsedAt ? keyWords.lastUsed(time(value.lastUsedAt)) : keyWords.neverUsed,
    value.expiresAt && (value.isExpired ? keyWords.expiredAt(time(value.expiresAt)) : keyWords.expiresAt(time(value.expiresAt))),
    value.agents && keyWords.onlyFor(value.agents.map((id) => listedAgentName(all, id, words.deletedAgent)).join(", ")),
    value.budgetMonth && keyWords.budgetOf(value.budgetMonth),
    value.actAs && (value.actAs.realm ? keyWords.actsFor(value.actAs.realm) : keyWords.actsForAll),
    value.mayDelete && keyWords.mayDelete,
  ];
  return (
    <p className={value.isExpired ? "about wrong" : "about"} dir="auto">
      {facts.filter(Boolean).join(" · ")}
    </p>
  );
}
