import { type AgentBody, type AgentColor, type AgentIcon, type AgentPatch, type AgentView } from "@threadkeep/client";

import { useForm } from "../state/use-form";
import { Field } from "../ui/field";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { AgentModels, type ChosenModels } from "./agent-models";
import { codeOf, isDeclared } from "./engine";
import { IconChoice } from "./icon-choice";
import { RemoteFields, engineOf, remoteOf, type Remote } from "./remote-fields";
import { SaveRow } from "./save-row";

type General = Required<Omit<AgentBody, "settings" | "applied" | "engine">> & Remote & ChosenModels & { starters: string; icon: AgentIcon; color: AgentColor };

interface Props {
  agent: AgentBody | AgentView;
  action: string;
  /** Receives all fields, and those that were changed. */
  onSave: (all: AgentBody, changes: AgentPatch) => Promise<void>;
  onProblem: (error: unknown) => void;
  onDelete?: () => void;
}

export function AgentGeneral({ agent, action, onSave, onProblem, onDelete }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const { values, changes, isChanged, isSaving, faultOf, set, save } = useForm<General>("general", {
    name: agent.name,
    description: agent.description ?? "",
    primaryRoleId: agent.primaryRoleId ?? "",
    systemPrompt: agent.systemPrompt ?? "",
    model: agent.model ?? "",
    visibility: agent.visibility ?? "private",
    models: agent.settings?.models ?? [],
    fallbackModels: agent.settings?.fallbackModels ?? [],
    starters: (agent.settings?.starters ?? []).join("\n"),
    icon: agent.settings?.icon ?? "letter",
    color: agent.settings?.color ?? "auto",
    ...remoteOf(agent.engine),
  });
  const bodyWith = (some: Partial<General>) => bodyOf(some, values, remoteOf(agent.engine));
  const isElsewhere = values.runsOn === "ag-ui";
  const declared = (name: keyof General) => isDeclared(agent, name);
  const about = (name: keyof General, hint?: string) => (declared(name) ? agentWords.declaredInCode : hint);
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save(() => onSave({ name: values.name, ...bodyWith(values) } as AgentBody, bodyWith(changes))).catch(onProblem);
      }}
    >
      <Field label={words.name} hint={about("name")} fault={faultOf("name")}>
        <input disabled={declared("name")} value={values.name} maxLength={100} required onChange={(event) => set("name", event.target.value)} />
      </Field>
      <Field label={agentWords.description} hint={about("description")} fault={faultOf("description")}>
        <input
          disabled={declared("description")}
          value={values.description}
          maxLength={2000}
          onChange={(event) => set("description", event.target.value)}
        />
      </Field>
      <IconChoice
        agent={{ id: "", isDefault: false, ...agent, name: values.name, icon: values.icon, color: values.color }}
        isIconDeclared={declared("icon")}
        onIcon={(icon) => set("icon", icon)}
        onColor={(color) => set("color", color)}
      />
      <Field label={agentWords.starters} hint={about("starters", agentWords.startersHint)} fault={faultOf("starters")}>
        <textarea
          disabled={declared("starters")}
          value={values.starters}
          rows={3}
          dir="auto"
          onChange={(event) => set("starters", event.target.value)}
        />
      </Field>
      {!codeOf(agent) && <RemoteFields values={values} faultOf={faultOf} onChange={(field, value) => set(field, value as General[typeof field])} />}
      {!isElsewhere && (
      <Field label={agentWords.systemPrompt} hint={about("systemPrompt", agentWords.systemPromptHint)} fault={faultOf("systemPrompt")}>
        <textarea
          disabled={declared("systemPrompt")}
          value={values.systemPrompt}
          rows={8}
          dir="auto"
          onChange={(event) => set("systemPrompt", event.target.value)}
        />
      </Field>
      )}
      <div className="columns">
        {!isElsewhere && (
        <Field label={agentWords.role} hint={about("primaryRoleId", agentWords.roleHint)} fault={faultOf("primaryRoleId")}>
          <input
            disabled={declared("primaryRoleId")}
            value={values.primaryRoleId}
            maxLength={100}
            onChange={(event) => set("primaryRoleId", event.target.value)}
          />
        </Field>
        )}
        <Field label={agentWords.visibility} hint={about("visibility")} fault={faultOf("visibility")}>
          <select
            disabled={declared("visibility")}
            value={values.visibility}
            onChange={(event) => set("visibility", event.target.value as General["visibility"])}
          >
            <option value="private">{agentWords.private}</option>
            <option value="public">{agentWords.public}</option>
          </select>
        </Field>
      </div>
      {!isElsewhere && (
        <AgentModels {...values} isDeclared={declared} faultOf={faultOf} onChange={(field, value) => set(field, value as General[typeof field])} />
      )}
      <SaveRow label={action} isChanged={isChanged} isSaving={isSaving} isReady={values.name.trim() !== "" && (!isElsewhere || values.url.trim() !== "")}>
        {onDelete && (
          <button type="button" className="danger" onClick={onDelete}>
            {agentWords.deleteAgent}
          </button>
        )}
      </SaveRow>
    </form>
  );
}

/** What was filled in, as the server takes it. */
function bodyOf(some: Partial<General>, all: General, before: Remote) {
  const { models, fallbackModels, starters, icon, color, runsOn, url, headers, repeat, ...body } = some;
  const isEngineGiven = [runsOn, url, headers, repeat].some((it) => it !== undefined);
  const settings = {
    ...(models && { models: [...models] }),
    ...(fallbackModels && { fallbackModels: [...fallbackModels] }),
    ...(starters !== undefined && { starters: starters.split("\n").map((it) => it.trim()).filter(Boolean) }),
    ...(icon && { icon }),
    ...(color && { color }),
  };
  return {
    ...body,
    ...(body.primaryRoleId === "" && { primaryRoleId: "assistant" }),
    ...(body.model === "" && { model: null }),
    ...(isEngineGiven && { engine: engineOf(all, before) }),
    ...(Object.keys(settings).length > 0 && { settings }),
  };
}
