import { type AgentBody, type AgentView } from "@threadkeep/client";

import { useForm } from "../hooks/use-form";
import { Field } from "../ui/field";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { SaveRow } from "./save-row";

type Body = Required<Omit<AgentBody, "settings">>;

interface Props {
  agent: AgentBody | AgentView;
  action: string;
  /** Receives all fields, and those that were changed. */
  onSave: (all: Body, changes: Partial<Body>) => Promise<void>;
  onProblem: (error: unknown) => void;
  onDelete?: () => void;
}

export function AgentGeneral({ agent, action, onSave, onProblem, onDelete }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const { values, changes, isChanged, isSaving, faultOf, set, save } = useForm<Body>("general", {
    name: agent.name,
    description: agent.description ?? "",
    primaryRoleId: agent.primaryRoleId ?? "",
    systemPrompt: agent.systemPrompt ?? "",
    model: agent.model ?? "",
    visibility: agent.visibility ?? "private",
  });
  const given = <B extends Partial<Body>>(body: B): B => ({
    ...body,
    ...(body.primaryRoleId === "" && { primaryRoleId: "assistant" }),
    ...(body.model === "" && { model: null }),
  });
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save(() => onSave(given(values), given(changes))).catch(onProblem);
      }}
    >
      <Field label={words.name} fault={faultOf("name")}>
        <input value={values.name} maxLength={100} required onChange={(event) => set("name", event.target.value)} />
      </Field>
      <Field label={agentWords.description} fault={faultOf("description")}>
        <input value={values.description} maxLength={2000} onChange={(event) => set("description", event.target.value)} />
      </Field>
      <Field label={agentWords.systemPrompt} hint={agentWords.systemPromptHint} fault={faultOf("systemPrompt")}>
        <textarea
          value={values.systemPrompt}
          rows={8}
          dir="auto"
          onChange={(event) => set("systemPrompt", event.target.value)}
        />
      </Field>
      <div className="columns">
        <Field label={agentWords.role} hint={agentWords.roleHint} fault={faultOf("primaryRoleId")}>
          <input value={values.primaryRoleId} maxLength={100} onChange={(event) => set("primaryRoleId", event.target.value)} />
        </Field>
        <Field label={words.model} hint={agentWords.modelHint} fault={faultOf("model")}>
          <input value={values.model ?? ""} maxLength={200} onChange={(event) => set("model", event.target.value)} />
        </Field>
        <Field label={agentWords.visibility} fault={faultOf("visibility")}>
          <select value={values.visibility} onChange={(event) => set("visibility", event.target.value as Body["visibility"])}>
            <option value="private">{agentWords.private}</option>
            <option value="public">{agentWords.public}</option>
          </select>
        </Field>
      </div>
      <SaveRow label={action} isChanged={isChanged} isSaving={isSaving} isReady={values.name.trim() !== ""}>
        {onDelete && (
          <button type="button" className="danger" onClick={onDelete}>
            {agentWords.deleteAgent}
          </button>
        )}
      </SaveRow>
    </form>
  );
}
