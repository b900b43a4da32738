import { useId } from "react";

import { type Fault, type FormField as Description, type TextFormat, type Value } from "../../turn/form";
import { useFaultWords, type FaultWords } from "../../words/faults";
import { useRequestWords } from "../../words/requests";

interface Props {
  field: Description;
  value: Value;
  fault: Fault | undefined;
  autoFocus?: boolean;
  onChange: (value: Value) => void;
}

const INPUTS: Record<TextFormat, string> = { "": "text", email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** One field of a form: of what an MCP server asks for, or of a call's arguments. */
export function FormField({ field, value, fault, autoFocus, onChange }: Props) {
  const faultWords = useFaultWords();
  const requestWords = useRequestWords();
  const id = useId();
  const described = {
    "aria-invalid": fault !== undefined,
    "aria-describedby": [field.description && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined,
  };
  const common = { id, autoFocus, name: field.name, "aria-required": field.required, ...described };
  const isGroup = field.kind === "choices";
  return (
    <div className="field" role={isGroup ? "group" : undefined} aria-labelledby={isGroup ? `${id}-label` : undefined}>
      {field.kind === "boolean" ? (
        <label className="tick">
          <input type="checkbox" {...common} checked={value === true} onChange={(event) => onChange(event.target.checked)} />
          {field.title}
        </label>
      ) : (
        <label htmlFor={isGroup ? undefined : id} id={`${id}-label`}>
          {field.title} {!field.required && <small>{requestWords.optional}</small>} {field.kind === "list" && <small>{requestWords.perLine}</small>}
        </label>
      )}
      {((field.kind === "text" && field.isLong) || field.kind === "list" || field.kind === "json") && (
        <textarea
          rows={2}
          dir="auto"
          data-kind={field.kind}
          spellCheck={field.kind === "text"}
          {...common}
          value={value as string}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {field.kind === "text" && !field.isLong && (
        <input
          type={INPUTS[field.format]}
          dir="auto"
          {...common}
          value={value as string}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {field.kind === "number" && (
        <input
          type="text"
          inputMode={field.integer ? "numeric" : "decimal"}
          {...common}
          value={value as string}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {field.kind === "choice" && (
        <select {...common} value={value as string} onChange={(event) => onChange(event.target.value)}>
          {(!field.required || value === "") && <option value="">{requestWords.choose}</option>}
          {field.options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.title}
            </option>
          ))}
        </select>
      )}
      {field.kind === "choices" &&
        field.options.map((option, index) => {
          const chosen = value as readonly string[];
          const toggled = (on: boolean) => (on ? [...chosen, option.value] : chosen.filter((it) => it !== option.value));
          return (
            <label key={option.value} className="tick">
              <input
                type="checkbox"
                name={field.name}
                id={index ? undefined : id}
                {...described}
                checked={chosen.includes(option.value)}
                onChange={(event) => onChange(toggled(event.target.checked))}
              />
              {option.title}
            </label>
          );
        })}
      {field.description && (
        <p className="hint" id={`${id}-hint`}>
          {field.description}
        </p>
      )}
      {fault && (
        <p className="fault" id={`${id}-fault`}>
          {describeFault(faultWords, fault)}
        </p>
      )}
    </div>
  );
}

function describeFault(faultWords: FaultWords, { code, limit }: Fault): string {
  const text = faultWords[code];
  return typeof text === "string" ? text : text(limit);
}
