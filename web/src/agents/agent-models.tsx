import { type ModelsView, type ModelView } from "@threadkeep/client";
import { ArrowUp, X } from "lucide-react";
import { useRef, useState } from "react";
import { flushSync } from "react-dom";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { CheckedModels, TypedNames } from "../gateways/model-choice";
import { Field } from "../ui/field";
import { IconButton } from "../ui/icon-button";
import { Picker } from "../ui/picker";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { useGatewayWords } from "../words/gateways";

/** What `models` has where users can choose any. */
const ANY = "*";

/** The models of an agent: its own (empty for the server's), those that its users can choose, and those that stand in. */
export interface ChosenModels {
  model: string | null;
  models: readonly string[];
  fallbackModels: readonly string[];
}

interface Props extends ChosenModels {
  /** Whether the agent's code declares a field. */
  isDeclared: (field: keyof ChosenModels) => boolean;
  faultOf: (field: keyof ChosenModels) => string | undefined;
  onChange: <K extends keyof ChosenModels>(field: K, value: ChosenModels[K]) => void;
}

const readModels = (signal: AbortSignal) => api.get<ModelsView>("/api/models", {}, signal);

export function AgentModels({ model, models, fallbackModels, isDeclared, faultOf, onChange }: Props) {
  const { loaded } = useLoaded(readModels);
  const listed = loaded.state === "ready" ? loaded.value.items : [];
  const own = model || listed.find((it) => it.default)?.id;
  const others = loaded.state === "loading" ? null : listed.map((it) => it.id).filter((it) => it !== own);
  return (
    <div className="columns">
      {isDeclared("model") ? (
        <DeclaredModel model={model || own || ""} />
      ) : (
        <OwnModel
          model={model ?? ""}
          listed={listed}
          isLoading={loaded.state === "loading"}
          fault={faultOf("model")}
          onChange={(name) => onChange("model", name)}
        />
      )}
      <OfferedModels models={models} others={others} fault={faultOf("models")} onChange={(names) => onChange("models", names)} />
      <FallbackModels
        models={fallbackModels}
        others={others}
        fault={faultOf("fallbackModels")}
        onChange={(names) => onChange("fallbackModels", names)}
      />
    </div>
  );
}

/** The model that the agent's code declares. */
function DeclaredModel({ model }: { model: string }) {
  const words = useWords();
  const agentWords = useAgentWords();
  return (
    <Field label={words.model} hint={agentWords.declaredInCode}>
      <input value={model} disabled />
    </Field>
  );
}

interface OwnProps {
  model: string;
  listed: readonly ModelView[];
  isLoading: boolean;
  fault: string | undefined;
  onChange: (model: string) => void;
}

/** One of the models that are listed, or any name: a gateway need not list what it has. */
function OwnModel({ model, listed, isLoading, fault, onChange }: OwnProps) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [isTyped, setTyped] = useState(false);
  const byDefault = listed.find((it) => it.default);
  const known = [...new Set([...(model && !isTyped ? [model] : []), ...listed.map((it) => it.id)])].sort();
  const byServer = agentWords.serverModel(byDefault?.name ?? "");
  const choose = (name: string) => {
    setTyped(false);
    onChange(name);
  };
  const type = () => {
    setTyped(true);
    onChange("");
  };
  const groups = [
    { items: [{ label: byServer, checked: !isTyped && !model, run: () => choose("") }] },
    { items: known.map((it) => ({ label: it, checked: !isTyped && it === model, run: () => choose(it) })) },
    { items: [{ label: agentWords.anotherModel, checked: isTyped, run: type }] },
  ];
  const typed = <input value={model} maxLength={200} spellCheck={false} onChange={(event) => onChange(event.target.value)} />;
  if (!listed.length && !isLoading)
    return (
      <Field label={words.model} hint={agentWords.modelHint} fault={fault}>
        {typed}
      </Field>
    );
  return (
    <>
      <Field label={words.model} fault={isTyped ? undefined : fault}>
        <Picker name={words.model} shown={isTyped ? agentWords.anotherModel : model || byServer} groups={groups} />
      </Field>
      {isTyped && (
        <Field label={agentWords.modelName} hint={agentWords.modelHint} fault={fault}>
          {typed}
        </Field>
      )}
    </>
  );
}

interface NamesProps {
  models: readonly string[];
  /** What is listed besides the agent's own; null until it is known. Where nothing is, names are typed. */
  others: readonly string[] | null;
  fault: string | undefined;
  onChange: (models: readonly string[]) => void;
}

/** Which models users can choose for their messages. */
function OfferedModels({ models, others, fault, onChange }: NamesProps) {
  const agentWords = useAgentWords();
  const gatewayWords = useGatewayWords();
  /** Whether the user is choosing, and has chosen none yet. */
  const [isChoosing, setChoosing] = useState(false);
  const choose = (names: readonly string[]) => {
    setChoosing(true);
    onChange(names);
  };
  const offer = models.includes(ANY) ? "any" : models.length || isChoosing ? "some" : "own";
  return (
    <>
      <Field label={agentWords.offered} hint={agentWords.offeredHint} fault={fault}>
        <select
          value={offer}
          onChange={({ target: { value } }) => {
            setChoosing(value === "some");
            onChange(value === "any" ? [ANY] : []);
          }}
        >
          <option value="own">{agentWords.offersOwn}</option>
          <option value="some">{agentWords.offersSome}</option>
          <option value="any">{agentWords.offersAny}</option>
        </select>
      </Field>
      {offer === "some" && others?.length === 0 && (
        <Field label={agentWords.offeredModels} hint={gatewayWords.namesHint}>
          <TypedNames chosen={models} onChange={choose} />
        </Field>
      )}
      {offer === "some" && others?.length !== 0 && (
        <CheckedModels label={agentWords.offeredModels} models={others ?? []} chosen={models} onChange={choose} />
      )}
    </>
  );
}

/** Which models are tried, in their order, where the chosen one can't answer. */
function FallbackModels({ models, others, fault, onChange }: NamesProps) {
  const agentWords = useAgentWords();
  const gatewayWords = useGatewayWords();
  const choice = useRef<HTMLButtonElement>(null);
  const addable = others?.filter((it) => !models.includes(it)) ?? [];
  const moveUp = (at: number) => onChange(models.toSpliced(at - 1, 2, models[at]!, models[at - 1]!));
  const remove = (name: string) => {
    flushSync(() => onChange(models.filter((it) => it !== name))); // it can be chosen again, and the choice has the focus
    choice.current?.focus();
  };
  if (others?.length === 0)
    return (
      <Field label={agentWords.fallbacks} hint={`${agentWords.fallbacksHint} ${gatewayWords.namesHint}`} fault={fault}>
        <TypedNames chosen={models} onChange={onChange} />
      </Field>
    );
  return (
    <div className="fallbacks">
      <Field label={agentWords.fallbacks} hint={agentWords.fallbacksHint} fault={fault}>
        <Picker
          button={choice}
          name={agentWords.fallbacks}
          shown={agentWords.addFallback}
          groups={[{ items: addable.map((it) => ({ label: it, run: () => onChange([...models, it]) })) }]}
          disabled={!addable.length}
        />
      </Field>
      {models.length > 0 && (
        <ol aria-label={agentWords.fallbacks}>
          {models.map((it, at) => (
            <li key={it}>
              <span>{it}</span>
              <IconButton
                icon={ArrowUp}
                label={agentWords.moveUp(it)}
                unavailable={at ? undefined : agentWords.isFirst}
                onClick={() => moveUp(at)}
              />
              <IconButton icon={X} label={agentWords.removeModel(it)} onClick={() => remove(it)} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
