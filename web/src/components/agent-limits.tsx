import { useState } from "react";

import { type AgentPatch, type AgentSettingsView } from "../api/schema";
import { useWords } from "../words";
import { Field } from "./field";

interface Props {
  settings: AgentSettingsView;
  onSave: (patch: AgentPatch) => Promise<void>;
}

/** Numbers of an agent; those that may be left open are null then. */
type Number_ =
  | "maxMessageChars"
  | "contextMessages"
  | "maxIterations"
  | "generationTimeoutS"
  | "compactionThreshold"
  | "retrievalTopK"
  | "retrievalThreshold"
  | "maxTokens"
  | "temperature";

const STEPS: Partial<Record<Number_, string>> = { temperature: "0.1", retrievalThreshold: "0.05", generationTimeoutS: "any" };

export function AgentLimits({ settings, onSave }: Props) {
  const words = useWords();
  const [now, setNow] = useState(settings);
  const number = (key: Number_, label: string) => (
    <Field label={label}>
      <input
        type="number"
        min={0}
        step={STEPS[key] ?? 1}
        value={now[key] ?? ""}
        onChange={(event) => setNow({ ...now, [key]: event.target.value === "" ? null : Number(event.target.value) })}
      />
    </Field>
  );
  const choice = (key: "contextThoughts" | "autoCompact", label: string) => (
    <label className="check">
      <input type="checkbox" checked={now[key]} onChange={(event) => setNow({ ...now, [key]: event.target.checked })} />
      {label}
    </label>
  );
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        const { mcpServers: _, ...limits } = now;
        void onSave({ settings: limits });
      }}
    >
      <p className="hint">{words.zeroNoLimit}</p>
      <div className="columns">
        {number("maxMessageChars", words.maxMessageChars)}
        {number("contextMessages", words.contextMessagesLimit)}
        {number("maxIterations", words.maxIterations)}
        {number("generationTimeoutS", words.generationTimeoutS)}
        {number("maxTokens", words.maxTokens)}
        {number("temperature", words.temperature)}
        {number("retrievalTopK", words.retrievalTopK)}
        {number("retrievalThreshold", words.retrievalThreshold)}
        {number("compactionThreshold", words.compactionThreshold)}
        <Field label={words.retrievalMode}>
          <select
            value={now.retrievalMode}
            onChange={(event) => setNow({ ...now, retrievalMode: event.target.value as "tool" | "auto" })}
          >
            <option value="tool">{words.retrievalTool}</option>
            <option value="auto">{words.retrievalAuto}</option>
          </select>
        </Field>
        <Field label={words.conversationMode}>
          <select
            value={now.conversationMode}
            onChange={(event) => setNow({ ...now, conversationMode: event.target.value as "single" | "multiple" })}
          >
            <option value="multiple">{words.multiple}</option>
            <option value="single">{words.single}</option>
          </select>
        </Field>
      </div>
      {choice("contextThoughts", words.contextThoughts)}
      {choice("autoCompact", words.autoCompact)}
      <div className="choices">
        <button type="submit" className="primary">
          {words.save}
        </button>
      </div>
    </form>
  );
}
