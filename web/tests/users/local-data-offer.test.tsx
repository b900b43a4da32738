import { type MeView } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it } from "vitest";

import { isPutOff } from "../../src/state/local-data";
import { session } from "../../src/state/session";
import { toasts } from "../../src/ui/toasts";
import { LocalDataOffer } from "../../src/users/local-data-offer";
import { click, draw, respond, seen, undraw } from "../draw";

const LEFT = { conversations: 12, agents: 1, briefings: 0, memories: 3 };
const ME: MeView = { id: "root", role: "admin", installation: "a", reassignable: LEFT };

beforeEach(() => {
  session.set({ state: "in", me: ME });
  respond.mockImplementation(async ({ pathname }) => {
    if (pathname === "/api/admin/reassign-local") return Response.json(LEFT);
    if (pathname === "/api/me") return Response.json({ ...ME, reassignable: undefined });
    return Response.json({ items: [], nextCursor: null });
  });
});

afterEach(() => {
  undraw();
  isPutOff.set(false);
  session.set({ state: "asking" });
  toasts.set([]);
});

it("moves what is left after a click, and says what that was", async () => {
  const drawn = draw(<LocalDataOffer left={LEFT} canPutOff />);
  expect(drawn.text).toContain("12 conversations, 1 agent and 3 memories");
  await click(drawn.named("Move to me"));
  await seen(() => expect(session.get()).toEqual({ state: "in", me: { ...ME, reassignable: undefined } }));
  await seen(() => expect(toasts.get()[0]?.text).toBe("Moved 12 conversations, 1 agent and 3 memories."));
});

it("says of one thing that it is one", () => {
  expect(draw(<LocalDataOffer left={{ conversations: 1, agents: 0, briefings: 0, memories: 0 }} />).text).toContain(
    "1 conversation from when everyone was one user. Nobody can see it now. Move it to your account?",
  );
});

it("can be put off, except where people are managed", async () => {
  const drawn = draw(<LocalDataOffer left={LEFT} canPutOff />);
  await click(drawn.named("Not now"));
  expect(drawn.text).toBe("");
  drawn.again(<LocalDataOffer left={LEFT} />);
  expect(drawn.text).toContain("Move to me");
  expect(drawn.allNamed("Not now")).toEqual([]);
});
