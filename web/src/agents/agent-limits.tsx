import { type AgentPatch, type AgentSettingsView } from "@threadkeep/client";

import { useForm } from "../hooks/use-form";
import { Field } from "../ui/field";
import { useWords } from "../words";
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
  const { values, changes, isChanged, isSaving, faultOf, set, save } = useForm<Limits>("limits", settings);
  const number = (key: Number_, label: string, hint?: string) => (
    <Field label={label} hint={hint} fault={faultOf(key)}>
      <input
        type="number"
        min={0}
        step={STEPS[key] ?? 1}
        value={values[key] ?? ""}
        onChange={(event) => set(key, event.target.value === "" ? null : Number(event.target.value))}
      />
    </Field>
  );
  const choice = (key: "contextThoughts" | "autoCompact", label: string) => (
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
      <div className="columns">
        {number("maxMessageChars", words.maxMessageChars, words.zeroNoLimit)}
        {number("contextMessages", words.contextMessagesLimit, words.zeroNoLimit)}
        {number("maxIterations", words.maxIterations, words.zeroNoLimit)}
        {number("generationTimeoutS", words.generationTimeoutS, words.zeroNoLimit)}
        {number("maxTokens", words.maxTokens)}
        <Field label={words.budgetMonth} hint={words.budgetMonthHint} fault={faultOf("budgetMonth")}>
          <input inputMode="decimal" value={values.budgetMonth ?? ""} onChange={(event) => set("budgetMonth", event.target.value.trim() || "0")} />
        </Field>
        {number("temperature", words.temperature)}
        {number("retrievalTopK", words.retrievalTopK)}
        {number("retrievalThreshold", words.retrievalThreshold)}
        {number("compactionThreshold", words.compactionThreshold)}
        <Field label={words.retrievalMode}>
          <select
            value={values.retrievalMode}
            onChange={(event) => set("retrievalMode", event.target.value as "tool" | "auto")}
          >
            <option value="tool">{words.retrievalTool}</option>
            <option value="auto">{words.retrievalAuto}</option>
          </select>
        </Field>
        <Field label={words.conversationMode}>
          <select
            value={values.conversationMode}
            onChange={(event) => set("conversationMode", event.target.value as "single" | "multiple")}
          >
            <option value="multiple">{words.multiple}</option>
            <option value="single">{words.single}</option>
          </select>
        </Field>
      </div>
      {choice("contextThoughts", words.contextThoughts)}
      {choice("autoCompact", words.autoCompact)}
      <SaveRow label={words.save} isChanged={isChanged} isSaving={isSaving} />
    </form>
  );
}
