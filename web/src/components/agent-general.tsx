import { useState } from "react";

import { type AgentBody, type AgentView } from "../api/schema";
import { useWords } from "../words";
import { Field } from "./field";

interface Props {
  agent: AgentBody | AgentView;
  action: string;
  onSave: (body: Omit<AgentBody, "settings">) => Promise<void>;
  onDelete?: () => void;
}

export function AgentGeneral({ agent, action, onSave, onDelete }: Props) {
  const words = useWords();
  const [name, setName] = useState(agent.name);
  const [description, setDescription] = useState(agent.description ?? "");
  const [role, setRole] = useState(agent.primaryRoleId ?? "");
  const [prompt, setPrompt] = useState(agent.systemPrompt ?? "");
  const [model, setModel] = useState(agent.model ?? "");
  const [visibility, setVisibility] = useState(agent.visibility ?? "private");
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        void onSave({
          name,
          description,
          primaryRoleId: role || "assistant",
          systemPrompt: prompt,
          model: model || null,
          visibility,
        });
      }}
    >
      <Field label={words.name}>
        <input value={name} maxLength={100} required onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label={words.description}>
        <input value={description} maxLength={2000} onChange={(event) => setDescription(event.target.value)} />
      </Field>
      <Field label={words.systemPrompt} hint={words.systemPromptHint}>
        <textarea value={prompt} rows={8} dir="auto" onChange={(event) => setPrompt(event.target.value)} />
      </Field>
      <div className="columns">
        <Field label={words.role} hint={words.roleHint}>
          <input value={role} maxLength={100} onChange={(event) => setRole(event.target.value)} />
        </Field>
        <Field label={words.model} hint={words.modelHint}>
          <input value={model} maxLength={200} onChange={(event) => setModel(event.target.value)} />
        </Field>
        <Field label={words.visibility}>
          <select value={visibility} onChange={(event) => setVisibility(event.target.value as "private" | "public")}>
            <option value="private">{words.private}</option>
            <option value="public">{words.public}</option>
          </select>
        </Field>
      </div>
      <div className="choices">
        <button type="submit" className="primary" disabled={!name.trim()}>
          {action}
        </button>
        {onDelete && (
          <button type="button" className="danger" onClick={onDelete}>
            {words.deleteAgent}
          </button>
        )}
      </div>
    </form>
  );
}
