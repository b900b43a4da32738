import { useId, useRef, useState, type FormEvent, type ReactNode } from "react";

import { useEscape } from "../../hooks/use-escape";
import { argumentForm, changedFields, editedArguments, faultsOf } from "../../turn/form";
import { escapeHidden } from "../../turn/hidden-characters";
import { useWords } from "../../words";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { FormField } from "./form-field";

type Arguments = Record<string, unknown>;

interface Props {
  values: Arguments;
  /** What the tool takes; unknown until the request has been read. */
  schema: Record<string, unknown> | undefined;
  sending: boolean;
  onCancel: () => void;
  onSave: (edited: Arguments) => void;
}

/** A call's arguments to change before it runs: a form if the tool's schema allows one, or else their JSON. */
export function EditArguments({ values, schema, ...props }: Props) {
  const requestWords = useRequestWords();
  useEscape(true, props.onCancel);
  const text = JSON.stringify(values, null, 2);
  // Only the JSON shows characters that hide others.
  const form = escapeHidden(text) === text ? argumentForm(schema, values) : null;
  const [json, setJson] = useState(form === null);
  const toggle = form && (
    <button type="button" className="link json" onClick={() => setJson(!json)}>
      {json ? requestWords.editAsForm : requestWords.editAsJson}
    </button>
  );
  if (json || !form)
    return (
      <EditJson initial={escapeHidden(text)} {...props}>
        {toggle}
      </EditJson>
    );
  return (
    <EditForm values={values} form={form} {...props}>
      {toggle}
    </EditForm>
  );
}

interface WayProps extends Pick<Props, "sending" | "onCancel" | "onSave"> {
  /** The way to the other way. */
  children: ReactNode;
}

function EditForm({ values, form, sending, onCancel, onSave, children }: WayProps & { values: Arguments; form: NonNullable<ReturnType<typeof argumentForm>> }) {
  const place = useRef<HTMLFormElement>(null);
  const [typed, setTyped] = useState(form.initial);
  const [tried, setTried] = useState(false);
  const faultsNow = () => faultsOf(changedFields(form.fields, form.initial, typed), typed);
  const faults = tried ? faultsNow() : {};
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    const [wrong] = Object.keys(faultsNow());
    if (wrong !== undefined) (place.current?.elements.namedItem(wrong) as HTMLElement | null)?.focus();
    else if (!sending) onSave(editedArguments(values, form, typed));
  };
  return (
    <form ref={place} className="edit-arguments fill-in" noValidate onSubmit={submit}>
      {form.fields.map((field, index) => (
        <FormField
          key={field.name}
          field={field}
          value={typed[field.name]!}
          fault={faults[field.name]}
          autoFocus={index === 0}
          onChange={(value) => setTyped((all) => ({ ...all, [field.name]: value }))}
        />
      ))}
      {children}
      <Choices sending={sending} onCancel={onCancel} />
    </form>
  );
}

function EditJson({ initial, sending, onCancel, onSave, children }: WayProps & { initial: string }) {
  const requestWords = useRequestWords();
  const id = useId();
  const [text, setText] = useState(initial);
  const read = readArguments(requestWords, text);
  return (
    <form
      className="edit-arguments"
      onSubmit={(event) => {
        event.preventDefault();
        if (read.values && !sending) onSave(read.values);
      }}
    >
      <label htmlFor={id}>{requestWords.editArguments}</label>
      <textarea
        id={id}
        autoFocus
        spellCheck={false}
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        aria-invalid={read.fault !== null}
        aria-describedby={`${id}-fault`}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="fault" id={`${id}-fault`} aria-live="polite">
        {read.fault}
      </p>
      {children}
      <Choices isReady={read.fault === null} sending={sending} onCancel={onCancel} />
    </form>
  );
}

function Choices({ isReady = true, sending, onCancel }: { isReady?: boolean; sending: boolean; onCancel: () => void }) {
  const words = useWords();
  const requestWords = useRequestWords();
  return (
    <div className="choices">
      <button type="submit" className="primary" disabled={!isReady} aria-disabled={sending}>
        {requestWords.allowEdited}
      </button>
      <button type="button" className="quiet" onClick={onCancel}>
        {words.cancel}
      </button>
    </div>
  );
}

type Read = { values: Arguments; fault: null } | { values: null; fault: string };

function readArguments(requestWords: RequestWords, text: string): Read {
  try {
    const values: unknown = JSON.parse(text);
    if (values === null || typeof values !== "object" || Array.isArray(values)) return { values: null, fault: requestWords.notAnObject };
    return { values: values as Arguments, fault: null };
  } catch (error) {
    return { values: null, fault: requestWords.notJson((error as Error).message) };
  }
}
