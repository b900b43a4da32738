import { useState } from "react";

import { useWords } from "../words";
import { LongText } from "./long-text";

/** What is longer is read in the JSON. */
const MOST_CHARACTERS = 400;

/** The arguments of a call as people read them: names and values; the JSON on demand. */
export function ArgumentsList({ values }: { values: Record<string, unknown> }) {
  const words = useWords();
  const [json, setJson] = useState(false);
  const entries = Object.entries(values);
  if (!entries.length) return <p className="detail">{words.noArguments}</p>;
  const needsJson = entries.some(([, value]) => isNested(value) || written(value).length > MOST_CHARACTERS);
  return (
    <>
      {json ? (
        <LongText text={JSON.stringify(values, null, 2)} />
      ) : (
        <dl className="arguments">
          {entries.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd dir="auto" className={isNested(value) ? "nested" : undefined}>
                {shortened(written(value))}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {(needsJson || json) && (
        <button type="button" className="link json" aria-pressed={json} onClick={() => setJson(!json)}>
          {json ? words.asList : words.asJson}
        </button>
      )}
    </>
  );
}

function isNested(value: unknown): boolean {
  return typeof value === "object" && value !== null && !(Array.isArray(value) && value.every((it) => typeof it !== "object"));
}

function written(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && !isNested(value)) return value.map(String).join(", ");
  return JSON.stringify(value);
}

function shortened(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}
