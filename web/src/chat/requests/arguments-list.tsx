import { useState } from "react";

import { escapeHidden } from "../../turn/hidden-characters";
import { LongText } from "../../ui/long-text";
import { useRequestWords } from "../../words/requests";

/** What is longer is read in the JSON. */
const MOST_CHARACTERS = 400;
/** For approval, a value up to this size is shown whole; of a larger one both ends, until the user expands it. */
const MOST_AT_ONCE = 4000;
const MOST_LINES = 40;
const END_CHARACTERS = 1000;
const END_LINES = 6;
/** Of more arguments than this, only the first ones. */
const MOST_ENTRIES = 40;

type Values = Record<string, unknown>;

/** Whether some of the values must be expanded before they are approved. */
export function isLong(values: Values): boolean {
  const all = Object.values(values);
  return all.length > MOST_ENTRIES || all.some((it) => isLongText(written(it)));
}

function isLongText(text: string): boolean {
  return text.length > MOST_AT_ONCE || text.split("\n", MOST_LINES + 1).length > MOST_LINES;
}

interface Props {
  values: Values;
  /** For approval: whether the user has expanded long values. */
  isExpanded?: boolean;
  onExpand?: () => void;
}

/** The arguments of a call as people read them: names and values; the JSON on demand. */
export function ArgumentsList({ values, isExpanded = false, onExpand }: Props) {
  const requestWords = useRequestWords();
  const [json, setJson] = useState(false);
  const entries = Object.entries(values);
  if (!entries.length) return <p className="detail">{requestWords.noArguments}</p>;
  const shown = onExpand && !isExpanded ? entries.slice(0, MOST_ENTRIES) : entries;
  const needsJson = entries.some(([, value]) => isNested(value) || (!onExpand && written(value).length > MOST_CHARACTERS));
  return (
    <>
      {json ? (
        <LongText text={escapeHidden(JSON.stringify(values, null, 2))} />
      ) : (
        <dl className="arguments">
          {shown.map(([name, value]) => (
            <div key={name}>
              <dt>{escapeHidden(name)}</dt>
              <dd dir="auto" className={isNested(value) ? "nested" : undefined}>
                {onExpand ? <Reviewed text={written(value)} isExpanded={isExpanded} /> : shortened(escapeHidden(written(value)))}
              </dd>
            </div>
          ))}
          {shown.length < entries.length && <div className="left-out">{requestWords.argumentsLeftOut(entries.length - shown.length)}</div>}
        </dl>
      )}
      {onExpand && !isExpanded && isLong(values) && (
        <button
          type="button"
          className="link json"
          onClick={() => {
            setJson(false);
            onExpand();
          }}
        >
          {requestWords.showAll}
        </button>
      )}
      {(needsJson || json) && (
        <button type="button" className="link json" aria-pressed={json} onClick={() => setJson(!json)}>
          {json ? requestWords.asList : requestWords.asJson}
        </button>
      )}
    </>
  );
}

/** A value that the user is about to approve: whole, or its two ends and how much lies between them. */
function Reviewed({ text, isExpanded }: { text: string; isExpanded: boolean }) {
  const requestWords = useRequestWords();
  if (isExpanded || !isLongText(text)) return escapeHidden(text);
  const start = text.slice(0, END_CHARACTERS).split("\n").slice(0, END_LINES).join("\n");
  const end = text.slice(-END_CHARACTERS).split("\n").slice(-END_LINES).join("\n");
  return (
    <>
      {escapeHidden(start)}
      <small className="left-out">{requestWords.charactersLeftOut(text.length - start.length - end.length)}</small>
      {escapeHidden(end)}
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
