import { describe, expect, test } from "vitest";

import { schemaIn } from "../../src/agents/output-field";

describe("the schema of an agent's replies", () => {
  test("blank text is none, and only an object of JSON is one", () => {
    expect(schemaIn("  \n")).toBeNull();
    expect(schemaIn('{"type": "object"}')).toEqual({ type: "object" });
    for (const wrong of ["{", "[]", "null", "1", "type: object"]) expect(schemaIn(wrong)).toBeUndefined();
  });
});
