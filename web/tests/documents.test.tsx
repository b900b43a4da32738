import { act } from "react";
import { afterEach, expect, it, vi } from "vitest";

import { type DocumentView } from "../src/api/schema";
import { AgentDocuments } from "../src/components/agent-documents";
import { DocumentSearch } from "../src/components/document-search";
import { answer, draw, type } from "./draw";

afterEach(() => vi.useRealTimers());

const document_ = (status: DocumentView["status"]) =>
  ({ id: "d", agentId: "a", fileName: "a.txt", size: 4, status, progress: 0.5, chunkCount: 1, error: null }) as DocumentView;
const listed = (status: DocumentView["status"]) => Response.json({ items: [document_(status)], nextCursor: null });

it("keeps the documents through a lost connection, and goes on looking at those in progress", async () => {
  vi.useFakeTimers();
  answer.mockResolvedValueOnce(listed("processing"));
  const drawn = draw(<AgentDocuments agentId="a" />);
  await act(() => vi.advanceTimersByTimeAsync(100));
  expect(drawn.find(".cards .status").textContent).toBe("processing…");
  answer.mockRejectedValueOnce(new TypeError("away"));
  await act(() => vi.advanceTimersByTimeAsync(1200));
  expect(drawn.text).toContain("Can’t reach the server.");
  expect(drawn.find(".cards .status").textContent).toBe("processing…");
  answer.mockResolvedValueOnce(listed("ready"));
  await act(() => vi.advanceTimersByTimeAsync(1200));
  expect(drawn.text).not.toContain("Can’t reach the server.");
  expect(drawn.find(".cards .status").textContent).toBe("ready");
});

it("shows what was searched for last, whichever answer comes last", async () => {
  const answers = new Map<string, (found: string) => void>();
  answer.mockImplementation((url, { signal }) => {
    return new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
      const hit = (text: string) => ({ chunkId: text, documentId: "d", source: "a.txt", page: null, heading: null, text, score: 1 });
      answers.set(url.searchParams.get("q")!, (found) => resolve(Response.json({ items: [hit(found)], notice: null })));
    });
  });
  const drawn = draw(<DocumentSearch agentId="a" />);
  for (const query of ["one", "two"]) {
    await type(drawn.find<HTMLInputElement>("input"), query);
    await act(async () => drawn.find<HTMLFormElement>("form").requestSubmit());
  }
  await act(async () => answers.get("two")!("Second"));
  await act(async () => answers.get("one")!("First"));
  expect(drawn.find(".snippet").textContent).toBe("Second");
});
