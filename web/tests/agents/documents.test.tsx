import { type DocumentView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { AgentDocuments } from "../../src/agents/agent-documents";
import { DocumentSearch } from "../../src/agents/document-search";
import { respond, draw, type, undraw } from "../draw";

afterEach(() => vi.useRealTimers());

const document_ = (status: DocumentView["status"]) =>
  ({ id: "d", agentId: "a", fileName: "a.txt", size: 4, status, progress: 0.5, chunkCount: 1, error: null }) as DocumentView;
const listed = (status: DocumentView["status"]) => Response.json({ items: [document_(status)], nextCursor: null });

it("keeps the documents through a lost connection, and goes on looking at those in progress", async () => {
  vi.useFakeTimers();
  respond.mockResolvedValueOnce(listed("processing"));
  const drawn = draw(<AgentDocuments agentId="a" />);
  await act(() => vi.advanceTimersByTimeAsync(100));
  expect(drawn.find(".cards .status").textContent).toBe("50% processed");
  respond.mockRejectedValueOnce(new TypeError("away"));
  await act(() => vi.advanceTimersByTimeAsync(1200));
  expect(drawn.text).toContain("Can’t reach the server.");
  expect(drawn.find(".cards .status").textContent).toBe("50% processed");
  respond.mockResolvedValueOnce(listed("ready"));
  await act(() => vi.advanceTimersByTimeAsync(1200));
  expect(drawn.text).not.toContain("Can’t reach the server.");
  expect(drawn.find(".cards .status").textContent).toBe("ready");
});

it("shows what was searched for last, whichever response comes last", async () => {
  const responses = new Map<string, (found: string) => void>();
  respond.mockImplementation((url, { signal }) => {
    return new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason as Error));
      const hit = (text: string) => ({ chunkId: text, documentId: "d", source: "a.txt", page: null, heading: null, text: `# ${text}`, snippet: text, score: 1 });
      responses.set(url.searchParams.get("q")!, (found) => resolve(Response.json({ items: [hit(found)], notice: null })));
    });
  });
  const drawn = draw(<DocumentSearch agentId="a" />);
  for (const query of ["one", "two"]) {
    await type(drawn.find<HTMLInputElement>("input"), query);
    await act(async () => drawn.find<HTMLFormElement>("form").requestSubmit());
  }
  await act(async () => responses.get("two")!("Second"));
  await act(async () => responses.get("one")!("First"));
  expect(drawn.find(".snippet").textContent).toBe("Second");
});

/** Uploads as the test lets them happen. */
class Upload {
  static all: Upload[] = [];
  upload: { onprogress?: (it: { loaded: number; total: number }) => void; onload?: () => void } = {};
  onload = () => {};
  onerror = () => {};
  onabort = () => {};
  status = 0;
  responseText = "";
  isAborted = false;
  open = () => {};
  setRequestHeader = () => {};
  getResponseHeader = () => null;
  send = () => void Upload.all.push(this);
  abort = () => {
    this.isAborted = true;
    this.onabort();
  };
  respond(document: Partial<DocumentView>): void {
    this.status = 201;
    this.responseText = JSON.stringify({ items: [document] });
    this.onload();
  }
}

describe("an upload that is cancelled", () => {
  const added = { ...document_("processing"), id: "new", fileName: "b.txt", size: 4 };
  let documents: DocumentView[];
  let deleted: string[];

  async function uploading() {
    vi.useFakeTimers();
    Upload.all = [];
    vi.stubGlobal("XMLHttpRequest", Upload);
    [documents, deleted] = [[document_("ready")], []];
    respond.mockImplementation(async (url, { method = "GET" }) => {
      if (method === "GET") return Response.json({ items: documents, nextCursor: null });
      const id = url.pathname.split("/").at(-1)!;
      deleted.push(id);
      documents = documents.filter((it) => it.id !== id);
      return new Response(null, { status: 204 });
    });
    const drawn = draw(<AgentDocuments agentId="a" />);
    await act(() => vi.advanceTimersByTimeAsync(100));
    const drop = async () => {
      const dataTransfer = { types: ["Files"], files: [new File(["text"], "b.txt", { lastModified: 1 })] };
      const event = Object.assign(new Event("drop", { bubbles: true, cancelable: true }), { dataTransfer });
      await act(async () => void drawn.find(".documents").dispatchEvent(event));
    };
    await drop();
    const cancel = () => act(async () => drawn.named("Cancel upload of b.txt").click());
    const later = () => act(() => vi.advanceTimersByTimeAsync(20_000));
    return { drawn, drop, cancel, later, request: Upload.all[0]! };
  }

  it("leaves no document that the server accepted, when everything had been sent", async () => {
    const { request, cancel, later } = await uploading();
    await act(async () => request.upload.onload!());
    await cancel();
    documents = [added, ...documents];
    await act(async () => request.respond(added));
    await later();
    expect(deleted).toEqual(["new"]);
  });

  it("leaves none when the response is lost, or the request was aborted too late", async () => {
    for (const isSent of [true, false]) {
      const { request, cancel, later } = await uploading();
      if (isSent) await act(async () => request.upload.onload!());
      await cancel();
      expect(request.isAborted).toBe(!isSent);
      if (isSent) await act(async () => request.onerror());
      await act(() => vi.advanceTimersByTimeAsync(500));
      documents = [added, ...documents]; // only now
      await later();
      expect(deleted).toEqual(["new"]);
      undraw();
    }
  });

  it("deletes no document that was there before, and none that is added again", async () => {
    const { request, drop, cancel, later } = await uploading();
    documents = [added, ...documents];
    await act(async () => request.upload.onload!());
    await cancel();
    await drop();
    await act(async () => request.onerror());
    await act(async () => Upload.all[1]!.respond(added));
    await later();
    expect(deleted).toEqual([]);
  });
});
