import { type AgentDetailView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { AgentServers } from "../../src/agents/agent-servers";
import { setToken } from "../../src/api/api";
import { confirmation } from "../../src/state/confirmation";
import { click, draw, respond, seen, type, type Drawn } from "../draw";

// As in the page of a server without sign-in.
vi.mock(import("../../src/api/api"), async (original) => ({ ...(await original()), isLocal: true }));

const AGENT = { id: "a", name: "Clerk", mcpServers: [] } as unknown as AgentDetailView;
const PROGRAM = { settings: { mcpServers: { time: { command: "uvx", args: ["mcp-server-time"] } } } };

let asked: unknown[];

beforeEach(() => {
  setToken(null);
  asked = [];
});

afterEach(() => confirmation.get()?.answer(false));

/** The server's response to a question what saving would change. */
function previewIs(response: () => Response): void {
  respond.mockImplementation(async (url, { body }) => {
    asked.push([url.pathname, JSON.parse(body as string)]);
    return response();
  });
}

async function add(onChange: () => Promise<AgentDetailView>, place: string): Promise<Drawn> {
  const drawn = draw(<AgentServers agent={AGENT} onChange={onChange} />);
  await click(drawn.named("Add server"));
  const [name, address] = drawn.place.querySelectorAll("input");
  await type(name!, "time");
  await type(address!, place);
  await click(drawn.named("Add"));
  return drawn;
}

it("asks before the first program locks others out, and saves nothing on a no", async () => {
  previewIs(() => Response.json({ changes: [], requiresToken: true }));
  const save = vi.fn(async () => AGENT);
  const drawn = await add(save, "uvx mcp-server-time");
  await seen(() => expect(confirmation.get()?.text).toContain("every request needs the server’s token"));
  expect(asked).toEqual([["/api/agents/a/preview", PROGRAM]]);
  await act(async () => confirmation.get()!.answer(false));
  expect(save).not.toHaveBeenCalled();
  expect([...drawn.place.querySelectorAll("input")].map((it) => it.value)).toEqual(["time", "uvx mcp-server-time"]);
});

it("says after the first program how to get back in", async () => {
  previewIs(() => Response.json({ changes: [], requiresToken: true }));
  setToken("secret");
  const written = vi.fn();
  vi.stubGlobal("navigator", { ...navigator, clipboard: { writeText: written } });
  const save = vi.fn(async () => AGENT);
  const drawn = await add(save, "uvx mcp-server-time");
  await seen(() => expect(confirmation.get()).not.toBeNull());
  await act(async () => confirmation.get()!.answer(true));
  await seen(() => expect(drawn.text).toContain("This server now requires its token"));
  expect(save).toHaveBeenCalledWith(PROGRAM);
  expect(drawn.text).not.toContain("secret");
  await click(drawn.named("Copy link with the token"));
  expect(written).toHaveBeenCalledWith(`${location.origin}/#token=secret`);
});

it("asks nothing where the token is required already, or for an address", async () => {
  previewIs(() => Response.json({ changes: [], requiresToken: false }));
  const save = vi.fn(async () => AGENT);
  await add(save, "uvx mcp-server-time");
  await seen(() => expect(save).toHaveBeenCalledTimes(1));
  await add(save, "https://mcp.example");
  await seen(() => expect(save).toHaveBeenCalledTimes(2));
  expect(confirmation.get()).toBeNull();
  expect(asked).toHaveLength(1);
});

it("tells a page without the token how to get it, and keeps what was filled in", async () => {
  const error = { code: "FORBIDDEN", message: "…", param: "settings.mcpServers.time", requestId: "1" };
  previewIs(() => Response.json({ error }, { status: 403 }));
  const drawn = await add(vi.fn(), "uvx mcp-server-time");
  await seen(() => expect(drawn.text).toContain("threadkeep open"));
  await act(async () => setToken("secret"));
  expect(drawn.text).toContain("This page has the token now.");
  expect([...drawn.place.querySelectorAll("input")].map((it) => it.value)).toEqual(["time", "uvx mcp-server-time"]);
});
