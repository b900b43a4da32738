import { useState } from "react";

import { Field } from "../ui/field";
import { useAgentWords } from "../words/agents";

export type Schema = Record<string, unknown> | null;

interface Props {
  schema: Schema;
  /** What is wrong in it. */
  fault?: string;
  /** Undefined while what is typed is no JSON object. */
  onChange: (schema: Schema | undefined) => void;
}

/** The JSON schema of an agent's replies, as text; what is typed stays, also while it is no JSON yet. */
export function OutputField({ schema, fault, onChange }: Props) {
  const agentWords = useAgentWords();
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? (schema === null ? "" : JSON.stringify(schema, null, 2));
  return (
    <Field label={agentWords.output} hint={agentWords.outputHint} fault={fault}>
      <textarea
        rows={6}
        dir="ltr"
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setTyped(event.target.value);
          onChange(schemaIn(event.target.value));
        }}
      />
    </Field>
  );
}

/** The schema that a text is: null if it is blank, undefined if it is no JSON object. */
export function schemaIn(text: string): Schema | undefined {
  if (text.trim() === "") return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : undefined;
  } catch {
    return undefined;
  }
}
