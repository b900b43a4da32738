import { useId, useRef, useState, type ReactNode } from "react";

import { Field } from "../ui/field";
import { useGatewayWords } from "../words/gateways";
import { chatModels, namesIn } from "./gateway";

/** Beyond this many, a filter helps. */
const MANY = 12;

interface ChosenProps {
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

interface ListedProps extends ChosenProps {
  /** The models that the provider lists; empty if it lists none. */
  listed: readonly string[];
}

interface AnotherProps {
  /** The name of a model that the list lacks, as far as it is typed. */
  another: string;
  /** What is wrong with the choice. */
  fault: string | undefined;
  onAnother: (name: string) => void;
  onAdd: () => void;
}

/** Which of a gateway's models agents and users can choose. */
export function ModelChoice({ listed, chosen, onChange, ...another }: ListedProps & AnotherProps) {
  const gatewayWords = useGatewayWords();
  if (!listed.length)
    return (
      <Field label={gatewayWords.names} hint={gatewayWords.namesHint} fault={another.fault}>
        <TypedNames chosen={chosen} onChange={onChange} />
      </Field>
    );
  return (
    <>
      <ListedModels listed={listed} chosen={chosen} onChange={onChange} />
      <AnotherModel {...another} />
    </>
  );
}

/** A provider may have more than it lists. */
function AnotherModel({ another, fault, onAnother, onAdd }: AnotherProps) {
  const gatewayWords = useGatewayWords();
  const field = useRef<HTMLInputElement>(null);
  const add = () => {
    onAdd();
    field.current?.focus();
  };
  return (
    <div className="another-model">
      <Field label={gatewayWords.another} fault={fault}>
        <input
          ref={field}
          value={another}
          maxLength={200}
          spellCheck={false}
          autoComplete="off"
          placeholder={gatewayWords.anotherHint}
          onChange={(event) => onAnother(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.nativeEvent.isComposing || !another.trim()) return;
            event.preventDefault();
            add();
          }}
        />
      </Field>
      <button type="button" disabled={!another.trim()} onClick={add}>
        {gatewayWords.add}
      </button>
    </div>
  );
}

/** Names of models, one per line. Keeps what is typed: an empty line is a beginning. */
export function TypedNames({ chosen, onChange, ...field }: ChosenProps) {
  const [text, setText] = useState(chosen.join("\n"));
  return (
    <textarea
      {...field}
      rows={3}
      value={text}
      spellCheck={false}
      onChange={(event) => {
        setText(event.target.value);
        onChange(namesIn(event.target.value));
      }}
    />
  );
}

function ListedModels({ listed, chosen, onChange }: ListedProps) {
  const gatewayWords = useGatewayWords();
  const [showsAll, setShowsAll] = useState(false);
  const forChat = chatModels(listed);
  const hidden = listed.length - forChat.length;
  return (
    <CheckedModels label={gatewayWords.choose} models={showsAll || !forChat.length ? listed : forChat} chosen={chosen} onChange={onChange}>
      {hidden > 0 && forChat.length > 0 && (
        <label className="check">
          <input type="checkbox" checked={showsAll} onChange={() => setShowsAll(!showsAll)} />
          <span>{gatewayWords.showAll(listed.length)}</span>
        </label>
      )}
    </CheckedModels>
  );
}

interface CheckedProps {
  label: string;
  models: readonly string[];
  /** May have some that are no longer among the models. */
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
  children?: ReactNode;
}

/** Any number of models to choose, with a filter where there are many. */
export function CheckedModels({ label, models, chosen, onChange, children }: CheckedProps) {
  const gatewayWords = useGatewayWords();
  const labelId = useId();
  const [filter, setFilter] = useState("");
  const known = [...new Set([...chosen, ...models])].sort();
  const shown = known.filter((it) => it.toLowerCase().includes(filter.trim().toLowerCase()));
  const toggle = (name: string) => onChange(chosen.includes(name) ? chosen.filter((it) => it !== name) : [...chosen, name]);
  return (
    <div className="field models" role="group" aria-labelledby={labelId}>
      <span id={labelId} className="label">
        {label}
      </span>
      {known.length > MANY && (
        <input
          type="search"
          value={filter}
          aria-label={gatewayWords.filter}
          placeholder={gatewayWords.filter}
          onChange={(event) => setFilter(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && event.preventDefault()}
        />
      )}
      <ul className="model-choice">
        {shown.map((name) => (
          <li key={name}>
            <label className="check">
              <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
              <span>{name}</span>
            </label>
          </li>
        ))}
        {!shown.length && <li className="hint">{gatewayWords.noMatch}</li>}
      </ul>
      {children}
    </div>
  );
}
