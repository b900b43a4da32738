import { type AgentView, type MemoryView, type PageView_MemoryView } from "@threadkeep/client";
import { useCallback, useRef, useState, type FormEvent } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useEscape } from "../hooks/use-escape";
import { useRowFocus } from "../hooks/use-row-focus";
import { confirmed } from "../state/confirmation";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { useMemoryWords } from "../words/memory";

const AT_ONCE = 200;

/** All that an agent remembers: at most a thousand short texts. */
async function readMemories(path: string, signal: AbortSignal): Promise<MemoryView[]> {
  const found: MemoryView[] = [];
  let cursor: string | null = null;
  do {
    const page: PageView_MemoryView = await api.get(path, { limit: AT_ONCE, cursor }, signal);
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

/** What an agent remembers about the user: to look at, to correct, to remove. */
export function MemoryList({ agent }: { agent: AgentView }) {
  const words = useWords();
  const memoryWords = useMemoryWords();
  const path = `/api/agents/${agent.id}/memories`;
  const { loaded, again } = useLoaded(useCallback((signal: AbortSignal) => readMemories(path, signal), [path]));
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed") {
    return (
      <p className="hint wrong" role="alert">
        {describeProblem(words, loaded.problem)}
      </p>
    );
  }
  if (!loaded.value.length) {
    return (
      <div className="nothing">
        <p>{memoryWords.nothing(agent.name)}</p>
        <p className="hint">{memoryWords.nothingHint}</p>
      </div>
    );
  }
  const change = async (work: Promise<unknown>, said?: string) => {
    try {
      await work;
      if (said) toast(said);
    } catch (error) {
      toastProblem(words, error);
    }
    await again();
  };
  const forgetAll = async () => {
    const question = { title: memoryWords.forgetAllOf(agent.name), text: memoryWords.forgetAllText, action: memoryWords.forgetAll };
    if (await confirmed(question)) await change(api.send("DELETE", path), memoryWords.forgotten);
  };
  const forget = async ({ id, content }: MemoryView) => {
    const question = { title: memoryWords.forgetOne, text: memoryWords.forgetOneText(content), action: memoryWords.forget };
    if (await confirmed(question)) await change(api.send("DELETE", `${path}/${id}`), memoryWords.forgotten);
  };
  return (
    <>
      <Memories
        all={loaded.value}
        onChange={({ id }, content) => change(api.send("PATCH", `${path}/${id}`, { content }))}
        onForget={(memory) => void forget(memory)}
      />
      <button type="button" className="danger" onClick={() => void forgetAll()}>
        {memoryWords.forgetAll}
      </button>
    </>
  );
}

interface MemoriesProps {
  all: readonly MemoryView[];
  onChange: (memory: MemoryView, content: string) => Promise<void>;
  onForget: (memory: MemoryView) => void;
}

function Memories({ all, onChange, onForget }: MemoriesProps) {
  const memoryWords = useMemoryWords();
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  return (
    <ul ref={rows} className="cards" aria-label={memoryWords.remembered}>
      {all.map((it) => (
        <Memory key={it.id} memory={it} onChange={(content) => onChange(it, content)} onForget={() => onForget(it)} />
      ))}
    </ul>
  );
}

interface MemoryProps {
  memory: MemoryView;
  onChange: (content: string) => Promise<void>;
  onForget: () => void;
}

function Memory({ memory, onChange, onForget }: MemoryProps) {
  const words = useWords();
  const memoryWords = useMemoryWords();
  const [typed, setTyped] = useState<string | null>(null);
  useEscape(typed !== null, () => setTyped(null));
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (typed?.trim() && typed !== memory.content) await onChange(typed);
    setTyped(null);
  };
  const about = [dateTime(memory.createdAt, words.locale), ...memory.tags];
  if (typed !== null) {
    return (
      <li className="card memory-item">
        <form onSubmit={(event) => void save(event)}>
          <textarea
            dir="auto"
            rows={3}
            aria-label={memoryWords.content}
            autoFocus
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
          <div className="choices">
            <button type="submit" className="primary" disabled={!typed.trim()}>
              {words.save}
            </button>
            <button type="button" onClick={() => setTyped(null)}>
              {words.cancel}
            </button>
          </div>
        </form>
      </li>
    );
  }
  return (
    <li className="card memory-item">
      <div>
        <p dir="auto">{memory.content}</p>
        <p className="about" dir="auto">
          {about.join(" · ")}
        </p>
      </div>
      <div className="choices">
        <button type="button" aria-label={memoryWords.editIt(memory.content)} onClick={() => setTyped(memory.content)}>
          {memoryWords.edit}
        </button>
        <button type="button" className="danger" aria-label={memoryWords.forgetIt(memory.content)} onClick={onForget}>
          {memoryWords.forget}
        </button>
      </div>
    </li>
  );
}
