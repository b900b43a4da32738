import { expect, test } from "vitest";

import { engineOf, remoteOf } from "../../src/agents/remote-fields";

const MASK = "••••••••";
const kept = remoteOf({ kind: "ag-ui", url: "https://a.example/run", headers: { Authorization: MASK, "X-Key": MASK }, repeat: true });

test("an agent that runs here has no engine to send", () => {
  expect(remoteOf({ kind: "config" })).toEqual({ runsOn: "here", url: "", headers: "", repeat: false });
  expect(engineOf({ ...kept, runsOn: "here" }, kept)).toBeNull();
});

test("headers are lines, and a removed one is null in the patch", () => {
  expect(kept.headers).toBe(`Authorization: ${MASK}\nX-Key: ${MASK}`);
  const changed = { ...kept, headers: ` Authorization:  Bearer a:b \n\nX-Other:` };
  expect(engineOf(changed, kept)).toEqual({
    kind: "ag-ui",
    url: "https://a.example/run",
    headers: { Authorization: "Bearer a:b", "X-Key": null, "X-Other": "" },
    repeat: true,
  });
});
