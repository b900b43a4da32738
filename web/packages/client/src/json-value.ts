/** What a value says as JSON. Pure. */

const KINDS = new Set(["Object", "Array", "String", "Number", "Boolean", "Null", "Undefined"]);

/** The value as JSON has it; `undefined` is null. Throws where JSON would fail, or silently lose what is in it. */
export function jsonValue(value: unknown): unknown {
  const { copy = null } = JSON.parse(JSON.stringify({ copy: value }, checked)) as { copy?: unknown };
  return copy;
}

function checked(_name: string, value: unknown): unknown {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (!KINDS.has(kind)) throw new TypeError(`JSON has no ${kind}`);
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`JSON has no ${value}`);
  return value;
}
