/** A form from a JSON schema, as MCP servers ask for one and as tools take arguments, and what its user fills in. Pure. */

export interface Option {
  value: string;
  title: string;
}

interface Named {
  name: string;
  title: string;
  description: string;
  required: boolean;
}

export type FormField = Named &
  (
    | { kind: "text"; format: TextFormat; isLong?: boolean; minLength: number; maxLength: number; pattern: string; initial: string }
    | { kind: "number"; integer: boolean; minimum: number; maximum: number; initial: string }
    | { kind: "boolean"; initial: boolean }
    | { kind: "choice"; options: readonly Option[]; initial: string }
    | { kind: "choices"; options: readonly Option[]; minItems: number; maxItems: number; initial: readonly string[] }
    /** Texts, one per line. */
    | { kind: "list"; minItems: number; maxItems: number; initial: string }
    /** Whatever has no field of its own. */
    | { kind: "json"; initial: string }
  );

export type TextFormat = "" | "email" | "uri" | "date" | "date-time";

/** A field's value: an input's text, a checkbox's state, or the chosen options. */
export type Value = string | boolean | readonly string[];
export type Values = Readonly<Record<string, Value>>;

/** Why a value is not valid; `limit` says what would be. */
export interface Fault {
  code: "required" | "tooShort" | "tooLong" | "email" | "uri" | "date" | "number" | "integer" | "least" | "most" | "fewest" | "mostChosen" | "pattern" | "json";
  limit: number;
}

type Schema = Record<string, unknown>;

const FORMATS: readonly string[] = ["email", "uri", "date", "date-time"];
const EMAIL = /^[^\s@]+@[^\s@]+$/;

/** The fields of a form; none if the schema doesn't describe an object. */
export function fieldsOf(schema: Schema | null | undefined): FormField[] {
  const required = new Set(listOf(schema?.["required"]));
  return Object.entries(objectOf(schema?.["properties"])).map(([name, it]) => fieldOf(name, objectOf(it), required.has(name)));
}

/** The choices if the answer is one string. */
export function choicesOf(schema: Schema | null | undefined): readonly Option[] {
  return schema ? optionsOf(schema) : [];
}

function fieldOf(name: string, given: Schema, required: boolean): FormField {
  const schema = withoutNull(given);
  const named = { name, title: textOf(schema["title"]) || name, description: textOf(schema["description"]), required };
  const initial = schema["default"];
  if (schema["type"] === "array") {
    const items = objectOf(schema["items"]);
    const options = optionsOf(items);
    const minItems = numberOf(schema["minItems"], 0);
    const maxItems = numberOf(schema["maxItems"], Infinity);
    if (options.length) return { ...named, kind: "choices", options, minItems, maxItems, initial: listOf(initial) };
    if (items["type"] === "string") return { ...named, kind: "list", minItems, maxItems, initial: listOf(initial).join("\n") };
    return { ...named, kind: "json", initial: jsonOf(initial) };
  }
  const options = optionsOf(schema);
  if (options.length) return { ...named, kind: "choice", options, initial: textOf(initial) };
  switch (schema["type"]) {
    case "boolean":
      return { ...named, kind: "boolean", initial: initial === true };
    case "number":
    case "integer": {
      const minimum = numberOf(schema["minimum"], -Infinity);
      const maximum = numberOf(schema["maximum"], Infinity);
      const integer = schema["type"] === "integer";
      return { ...named, kind: "number", integer, minimum, maximum, initial: typeof initial === "number" ? String(initial) : "" };
    }
    case "string": {
      const given = textOf(schema["format"]);
      const format = FORMATS.includes(given) ? (given as TextFormat) : "";
      const minLength = numberOf(schema["minLength"], 0);
      const maxLength = numberOf(schema["maxLength"], Infinity);
      const pattern = textOf(schema["pattern"]);
      return { ...named, kind: "text", format, minLength, maxLength, pattern, initial: textOf(initial) };
    }
    default:
      return { ...named, kind: "json", initial: jsonOf(initial) };
  }
}

/** A schema of a value that may also be null, without that: a field that is left empty is left out. */
function withoutNull(schema: Schema): Schema {
  const { type, anyOf } = schema;
  if (Array.isArray(type)) {
    const types = type.filter((it) => it !== "null");
    return types.length === 1 ? { ...schema, type: types[0] } : schema;
  }
  if (!Array.isArray(anyOf)) return schema;
  const kinds = anyOf.map(objectOf).filter((it) => it["type"] !== "null");
  const { anyOf: _, ...rest } = schema;
  return kinds.length === 1 && anyOf.length > 1 ? { ...kinds[0], ...rest } : schema;
}

/** `enum`, with names beside it or without, or a list of constants with titles. */
function optionsOf(schema: Schema): Option[] {
  const values = listOf(schema["enum"]);
  if (values.length) {
    const names = listOf(schema["enumNames"]);
    return values.map((value, index) => ({ value, title: names[index] ?? value }));
  }
  const titled = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(titled)) return [];
  return titled.flatMap((it) => {
    const { const: value, title } = objectOf(it);
    return typeof value === "string" ? [{ value, title: textOf(title) || value }] : [];
  });
}

export function initialValues(fields: readonly FormField[]): Values {
  return Object.fromEntries(fields.map(({ name, initial }) => [name, initial]));
}

/** What is wrong, by the field's name. */
export function faultsOf(fields: readonly FormField[], values: Values): Record<string, Fault> {
  const found = fields.flatMap((field) => {
    const fault = faultOf(field, values[field.name]);
    return fault ? [[field.name, fault] as const] : [];
  });
  return Object.fromEntries(found);
}

function faultOf(field: FormField, value: Value | undefined): Fault | null {
  const fault = (code: Fault["code"], limit = 0): Fault => ({ code, limit });
  if (field.kind === "boolean") return null;
  if (field.kind === "choices") {
    const count = Array.isArray(value) ? value.length : 0;
    if (!count && !field.required) return null;
    if (!count) return fault("required");
    if (count < field.minItems) return fault("fewest", field.minItems);
    return count > field.maxItems ? fault("mostChosen", field.maxItems) : null;
  }
  const text = typeof value === "string" ? value : "";
  if (text === "") return field.required ? fault("required") : null;
  switch (field.kind) {
    case "choice":
      return null;
    case "json":
      return isJson(text) ? null : fault("json");
    case "list": {
      const { length } = linesOf(text);
      if (length < field.minItems) return fault("fewest", field.minItems);
      return length > field.maxItems ? fault("mostChosen", field.maxItems) : null;
    }
    case "number": {
      const number = Number(text);
      if (!Number.isFinite(number) || text.trim() === "") return fault("number");
      if (field.integer && !Number.isSafeInteger(number)) return fault("integer");
      if (number < field.minimum) return fault("least", field.minimum);
      return number > field.maximum ? fault("most", field.maximum) : null;
    }
    case "text": {
      const { length } = [...text];
      if (length < field.minLength) return fault("tooShort", field.minLength);
      if (length > field.maxLength) return fault("tooLong", field.maxLength);
      if (field.format === "email" && !EMAIL.test(text)) return fault("email");
      if (field.format === "uri" && !URL.canParse(text)) return fault("uri");
      if (field.format.startsWith("date") && Number.isNaN(Date.parse(text))) return fault("date");
      return field.pattern && !fits(text, field.pattern) ? fault("pattern") : null;
    }
  }
}

/** The server checks a pattern that this browser cannot parse. */
function fits(text: string, pattern: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

/** The answer as the schema describes it; empty fields are left out. */
export function answerOf(fields: readonly FormField[], values: Values): Record<string, unknown> {
  const filled = fields.flatMap((field) => {
    const value = values[field.name] ?? field.initial;
    if (field.kind === "choices" && !field.required && !(value as readonly string[]).length) return [];
    if (value === "") return [];
    return [[field.name, typed(field, value)] as const];
  });
  return Object.fromEntries(filled);
}

function typed(field: FormField, value: Value): unknown {
  if (field.kind === "number") return Number(value);
  if (field.kind === "json") return JSON.parse(value as string);
  if (field.kind === "list") return linesOf(value as string);
  if (field.kind === "text" && field.format === "date-time") return new Date(value as string).toISOString();
  return value;
}

/** A call's arguments as a form; null if it can't show them as they are. */
export function argumentForm(schema: Schema | null | undefined, values: Schema): { fields: FormField[]; initial: Values } | null {
  // A long text needs several lines. Times stay as they were written.
  const fields = fieldsOf(schema).map((field): FormField => {
    if (field.kind !== "text") return field;
    const text = textOf(values[field.name]);
    return { ...field, format: "", isLong: text.length > MOST_OF_A_LINE || text.includes("\n") };
  });
  const shown = fields.map((field) => [field.name, shownIn(field, values[field.name])] as const);
  if (!fields.length || shown.some(([, value]) => value === null)) return null;
  return { fields, initial: Object.fromEntries(shown) as Values };
}

const MOST_OF_A_LINE = 60;

/** A value as its field shows it; null if it can't. */
function shownIn(field: FormField, value: unknown): Value | null {
  if (value === undefined) return field.kind === "boolean" ? false : field.kind === "choices" ? [] : "";
  switch (field.kind) {
    case "json":
      return jsonOf(value);
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "number":
      return typeof value === "number" ? String(value) : null;
    case "list":
    case "choices": {
      const items = listOf(value);
      if (!Array.isArray(value) || items.length !== value.length) return null;
      if (field.kind === "choices") return items;
      return items.every((it) => it.trim() && !it.includes("\n")) ? items.join("\n") : null;
    }
    case "text":
      return typeof value === "string" ? value : null;
    case "choice":
      return typeof value === "string" && field.options.some((it) => it.value === value) ? value : null;
  }
}

/** The arguments with what was changed in the form; everything else stays exactly as it was. */
export function editedArguments(values: Schema, { fields, initial }: { fields: readonly FormField[]; initial: Values }, typedIn: Values): Schema {
  const edited = { ...values };
  for (const field of changedFields(fields, initial, typedIn)) {
    const value = typedIn[field.name]!;
    if (value === "") delete edited[field.name];
    else edited[field.name] = typed(field, value);
  }
  return edited;
}

export function changedFields(fields: readonly FormField[], initial: Values, typedIn: Values): FormField[] {
  return fields.filter(({ name }) => JSON.stringify(typedIn[name]) !== JSON.stringify(initial[name]));
}

function linesOf(text: string): string[] {
  return text.split("\n").map((it) => it.trim()).filter(Boolean);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function jsonOf(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

function objectOf(value: unknown): Schema {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Schema) : {};
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((it) => typeof it === "string") : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
