import { type PromptComponentView, type PromptView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { useCallback, useEffect, useRef, useState, type FormEvent } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useUnsaved } from "../state/unsaved";
import { LongText } from "../ui/long-text";
import { toastProblem, describeProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { SaveRow } from "./save-row";

/** The system prompt, part by part; the user can write its files here. */
export function AgentPrompt({ agentId, version }: { agentId: string; version: number | undefined }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const path = `/api/agents/${agentId}/prompt`;
  const { loaded, again, set } = useLoaded(
    useCallback((signal: AbortSignal) => api.get<PromptView>(path, {}, signal), [path]),
  );
  // Another form changed the agent: the preview follows, and what is typed here stays.
  const shown = useRef(version);
  useEffect(() => {
    if (shown.current !== version) void again();
    shown.current = version;
  }, [version, again]);
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed") return <p className="hint">{describeProblem(words, loaded.problem)}</p>;
  const { components, editable, length, notices } = loaded.value;
  const write = async (name: string, text: string) => {
    try {
      set(await api.send<PromptView>("PUT", `${path}/${encodeURIComponent(name)}`, { text }));
      toast(agentWords.saved);
      return true;
    } catch (error) {
      toastProblem(words, error);
      return false;
    }
  };
  return (
    <div className="form">
      <p className="hint">
        {agentWords.promptHint} {words.characters(length.toLocaleString(words.locale))}
      </p>
      {notices.map((it) => (
        <p key={it.code + it.message} className="notice">
          {it.message}
        </p>
      ))}
      <h2>{agentWords.promptSeen}</h2>
      {components.length === 0 && <p className="hint">{agentWords.promptEmpty}</p>}
      {components.map((it) => (
        <Component key={it.name} component={it} />
      ))}
      <h2>{agentWords.promptFiles}</h2>
      {editable.map((name) => (
        <Editor
          key={name}
          name={name}
          text={components.find((it) => it.name === name)?.text ?? ""}
          cut={components.find((it) => it.name === name)?.truncated ?? false}
          onWrite={(text) => write(name, text)}
        />
      ))}
    </div>
  );
}

function Component({ component }: { component: PromptComponentView }) {
  const words = useWords();
  const agentWords = useAgentWords();
  return (
    <details className="card">
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{agentWords.promptParts[component.name] ?? component.name}</span>
        <small>
          {words.characters(component.length.toLocaleString(words.locale))}
          {component.truncated && ` · ${words.cut}`}
        </small>
      </summary>
      <LongText text={component.text} />
    </details>
  );
}

interface EditorProps {
  name: string;
  text: string;
  /** A truncated text can't be edited here without losing the rest. */
  cut: boolean;
  /** Whether it was saved. */
  onWrite: (text: string) => Promise<boolean>;
}

function Editor({ name, text, cut, onWrite }: EditorProps) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [typed, setTyped] = useState<string | null>(null);
  const now = typed ?? text;
  const isChanged = now !== text;
  useUnsaved("prompt", isChanged);
  const [isSaving, setSaving] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setSaving(true);
    if (await onWrite(now)) setTyped((it) => (it === now ? null : it));
    setSaving(false);
  };
  return (
    <details className="card">
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{name}</span>
        <small>{text ? words.characters(text.length.toLocaleString(words.locale)) : agentWords.empty}</small>
      </summary>
      <form className="editor" onSubmit={(event) => void submit(event)}>
        {cut && <p className="notice">{agentWords.promptCut}</p>}
        <textarea aria-label={name} rows={8} dir="auto" value={now} onChange={(event) => setTyped(event.target.value)} />
        <SaveRow label={words.save} isChanged={isChanged} isSaving={isSaving} />
      </form>
    </details>
  );
}
