import { type AgentPatch, type AgentSettingsView } from "@threadkeep/client";
import { useState } from "react";

import { useForm } from "../state/use-form";
import { Field } from "../ui/field";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { OutputField, type Schema } from "./output-field";
import { SaveRow } from "./save-row";

interface Props {
  settings: AgentSettingsView;
  onSave: (patch: AgentPatch) => Promise<void>;
  onProblem: (error: unknown) => void;
}

/** An emptied number is null, which is the default. */
type Limits = Omit<AgentSettingsView, Number_> & Record<Number_, number | null>;

/** An agent's numbers; optional ones may be null. */
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

export function AgentLimits({ settings, onSave, onProblem }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const { values, changes, isChanged, isSaving, faultOf, set, save } = useForm<Limits>("limits", settings);
  const [isSchemaWrong, setSchemaWrong] = useState(false);
  const number = (key: Number_, label: string) => (
    <Field label={label} fault={faultOf(key)}>
      <input
        type="number"
        min={0}
        step={STEPS[key] ?? 1}
        value={values[key] ?? ""}
        onChange={(event) => set(key, event.target.value === "" ? null : Number(event.target.value))}
      />
    </Field>
  );
  const choice = (key: "contextThoughts" | "autoCompact" | "userInstructions", label: string) => (
    <label className="check">
      <input type="checkbox" checked={values[key]} onChange={(event) => set(key, event.target.checked)} />
      {label}
    </label>
  );
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save(() => onSave({ settings: changes })).catch(onProblem);
      }}
    >
      <p className="hint">{agentWords.zeroNoLimit}</p>
      <div className="columns">
        {number("maxMessageChars", agentWords.maxMessageChars)}
        {number("contextMessages", agentWords.contextMessagesLimit)}
        {number("maxIterations", agentWords.maxIterations)}
        {number("generationTimeoutS", agentWords.generationTimeoutS)}
        {number("maxTokens", agentWords.maxTokens)}
        <Field label={agentWords.budgetMonth} hint={agentWords.budgetMonthHint} fault={faultOf("budgetMonth")}>
          <input inputMode="decimal" value={values.budgetMonth ?? ""} onChange={(event) => set("budgetMonth", event.target.value.trim() || "0")} />
        </Field>
        {number("temperature", agentWords.temperature)}
        {number("retrievalTopK", agentWords.retrievalTopK)}
        {number("retrievalThreshold", agentWords.retrievalThreshold)}
        {number("compactionThreshold", agentWords.compactionThreshold)}
        <Field label={agentWords.deleteAfterDays} hint={agentWords.deleteAfterDaysHint} fault={faultOf("deleteAfterDays")}>
          <input
            type="number"
            min={0}
            value={values.deleteAfterDays ?? 0}
            onChange={(event) => set("deleteAfterDays", Number(event.target.value))}
          />
        </Field>
        <Field label={agentWords.retrievalMode}>
          <select
            value={values.retrievalMode}
            onChange={(event) => set("retrievalMode", event.target.value as "tool" | "auto")}
          >
            <option value="tool">{agentWords.retrievalTool}</option>
            <option value="auto">{agentWords.retrievalAuto}</option>
          </select>
        </Field>
        <Field label={agentWords.conversationMode}>
          <select
            value={values.conversationMode}
            onChange={(event) => set("conversationMode", event.target.value as "single" | "multiple")}
          >
            <option value="multiple">{agentWords.multiple}</option>
            <option value="single">{agentWords.single}</option>
          </select>
        </Field>
      </div>
      {choice("contextThoughts", agentWords.contextThoughts)}
      {choice("autoCompact", agentWords.autoCompact)}
      {choice("userInstructions", agentWords.userInstructions)}
      <OutputField
        schema={(values.output as Schema | undefined) ?? null}
        fault={isSchemaWrong ? agentWords.outputNoJson : faultOf("output")}
        onChange={(schema) => {
          setSchemaWrong(schema === undefined);
          if (schema !== undefined) set("output", schema);
        }}
      />
      <SaveRow label={words.save} isChanged={isChanged} isSaving={isSaving} isReady={!isSchemaWrong} />
    </form>
  );
}
