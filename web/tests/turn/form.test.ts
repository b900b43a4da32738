import { describe, expect, it } from "vitest";

import { answerOf, argumentForm, changedFields, choicesOf, editedArguments, faultsOf, fieldsOf, initialValues, type Values } from "../../src/turn/form";

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name", description: "As on the passport", minLength: 2, maxLength: 5 },
    email: { type: "string", format: "email" },
    site: { type: "string", format: "uri" },
    day: { type: "string", format: "date" },
    at: { type: "string", format: "date-time" },
    seats: { type: "integer", minimum: 1, maximum: 9, default: 2 },
    weight: { type: "number" },
    window: { type: "boolean", default: true },
    meal: { type: "string", enum: ["v", "m"], enumNames: ["Vegetarian", "Meat"] },
    class: { type: "string", oneOf: [{ const: "1", title: "First" }, { const: "2", title: "Second" }], default: "2" },
    extras: { type: "array", items: { type: "string", enum: ["bag", "seat"] }, minItems: 1, maxItems: 1 },
    code: { type: "string", pattern: "^[A-Z]{3}$" },
  },
  required: ["name", "seats"],
};
const fields = fieldsOf(SCHEMA);
const filled = (values: Values): Values => ({ ...initialValues(fields), ...values });
const faults = (values: Values) =>
  Object.fromEntries(Object.entries(faultsOf(fields, filled(values))).map(([name, { code, limit }]) => [name, limit ? [code, limit] : [code]]));

it("has a field for each property, with its title and its choices", () => {
  expect(fields.map((it) => [it.name, it.kind])).toEqual([
    ["name", "text"],
    ["email", "text"],
    ["site", "text"],
    ["day", "text"],
    ["at", "text"],
    ["seats", "number"],
    ["weight", "number"],
    ["window", "boolean"],
    ["meal", "choice"],
    ["class", "choice"],
    ["extras", "choices"],
    ["code", "text"],
  ]);
  expect(fields[0]).toMatchObject({ title: "Your name", description: "As on the passport", required: true });
  expect(fields[1]).toMatchObject({ title: "email", required: false });
  expect(fields[8]).toMatchObject({ options: [{ value: "v", title: "Vegetarian" }, { value: "m", title: "Meat" }] });
});

it("begins with the defaults", () => {
  expect(initialValues(fields)).toMatchObject({ name: "", seats: "2", window: true, meal: "", class: "2", extras: [] });
});

describe("what is filled in", () => {
  it.each<[Values, object]>([
    [{}, { name: ["required"] }],
    [{ name: "A" }, { name: ["tooShort", 2] }],
    [{ name: "👩👩👩👩👩" }, {}],
    [{ name: "Abcdef" }, { name: ["tooLong", 5] }],
    [{ name: "Ann", email: "ann" }, { email: ["email"] }],
    [{ name: "Ann", site: "nowhere" }, { site: ["uri"] }],
    [{ name: "Ann", day: "soon" }, { day: ["date"] }],
    [{ name: "Ann", seats: "" }, { seats: ["required"] }],
    [{ name: "Ann", seats: "0" }, { seats: ["least", 1] }],
    [{ name: "Ann", seats: "10" }, { seats: ["most", 9] }],
    [{ name: "Ann", seats: "1.5" }, { seats: ["integer"] }],
    [{ name: "Ann", weight: "much" }, { weight: ["number"] }],
    [{ name: "Ann", extras: ["bag", "seat"] }, { extras: ["mostChosen", 1] }],
    [{ name: "Ann", code: "abc" }, { code: ["pattern"] }],
    [{ name: "Ann", email: "a@b.c", site: "https://b.c", day: "2026-01-02", weight: "1e1", extras: ["bag"], code: "ABC" }, {}],
  ])("is checked: %j", (values, found) => {
    expect(faults(values)).toEqual(found);
  });

  it("is answered in the schema's types, without what was left empty", () => {
    const values = filled({ name: "Ann", weight: "1.5", window: false, at: "2026-01-02T03:04:05Z", extras: ["bag"] });
    expect(answerOf(fields, values)).toEqual({
      name: "Ann",
      seats: 2,
      weight: 1.5,
      window: false,
      class: "2",
      at: "2026-01-02T03:04:05.000Z",
      extras: ["bag"],
    });
  });
});

it("is nothing where there is no schema, or none of an object", () => {
  expect(fieldsOf(null)).toEqual([]);
  expect(fieldsOf({ type: "string" })).toEqual([]);
  expect(fieldsOf({ properties: { odd: null } })).toMatchObject([{ name: "odd", kind: "json" }]);
  expect(choicesOf({ type: "string", enum: ["Red", "Blue"] })).toEqual([
    { value: "Red", title: "Red" },
    { value: "Blue", title: "Blue" },
  ]);
  expect(choicesOf(undefined)).toEqual([]);
});

it("leaves a pattern that cannot be read to the server", () => {
  const [field] = fieldsOf({ properties: { a: { type: "string", pattern: "(" } } });
  expect(faultsOf([field!], { a: "x" })).toEqual({});
});

describe("a call's arguments as a form", () => {
  const schema = {
    properties: {
      to: { type: "string" },
      body: { type: "string" },
      copies: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
      tags: { type: "array", items: { type: "string" } },
      options: { type: "object" },
      urgent: { type: "boolean" },
    },
    required: ["to"],
  };
  const values = { to: "Ada", body: "One\ntwo", tags: ["a", "b"], options: { a: 1 }, extra: true };

  it("shows each as its schema says, and what has no field of its own as JSON", () => {
    const { fields, initial } = argumentForm(schema, values)!;
    expect(fields.map(({ name, kind }) => [name, kind])).toEqual([
      ["to", "text"],
      ["body", "text"],
      ["copies", "number"],
      ["tags", "list"],
      ["options", "json"],
      ["urgent", "boolean"],
    ]);
    expect(fields.map((it) => it.kind === "text" && it.isLong)).toEqual([false, true, false, false, false, false]);
    expect(initial).toEqual({ to: "Ada", body: "One\ntwo", copies: "", tags: "a\nb", options: '{\n  "a": 1\n}', urgent: false });
  });

  it("changes what was changed and leaves the rest exactly as it was", () => {
    const form = argumentForm(schema, values)!;
    expect(editedArguments(values, form, form.initial)).toEqual(values);
    const typed = { ...form.initial, to: "Bob", body: "", copies: "2", tags: "a\n\n c ", options: "[1]" };
    expect(editedArguments(values, form, typed)).toEqual({ to: "Bob", copies: 2, tags: ["a", "c"], options: [1], extra: true });
    const wrong = { ...form.initial, to: "", options: "{", copies: "x" };
    const faults = faultsOf(changedFields(form.fields, form.initial, wrong), wrong);
    expect(Object.entries(faults).map(([name, { code }]) => [name, code])).toEqual([["to", "required"], ["copies", "number"], ["options", "json"]]);
  });

  it.each([
    ["no schema", undefined, values],
    ["a value of another type", schema, { to: 3 }],
    ["an item that is more than a line", schema, { to: "Ada", tags: ["a\nb"] }],
  ])("leaves it to the JSON: %s", (_, given, arguments_) => {
    expect(argumentForm(given, arguments_)).toBeNull();
  });
});
