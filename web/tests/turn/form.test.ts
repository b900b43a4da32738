import { describe, expect, it } from "vitest";

import { answerOf, choicesOf, faultsOf, fieldsOf, initialValues, type Values } from "../../src/turn/form";

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
  expect(fieldsOf({ properties: { odd: null } })).toMatchObject([{ name: "odd", kind: "text" }]);
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
