import { type RetrievalHitView } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { DocumentText } from "../../../src/chat/reply/document-text";
import { SourceDrawer } from "../../../src/chat/reply/source-drawer";
import { useDocumentText } from "../../../src/chat/reply/use-document-text";
import { respond, click, draw, type Drawn } from "../../draw";

const TOTAL = 60;

/** A server with a document of many passages. */
const page = async (url: URL): Promise<Response> => {
  const [from, limit] = ["fromPosition", "limit"].map((it) => Number(url.searchParams.get(it))) as [number, number];
  const items = Array.from({ length: Math.min(limit, TOTAL - from) }, (_, at) => {
    return { chunkId: `d:${from + at}`, position: from + at, page: null, heading: null, text: `Passage ${from + at}.` };
  });
  return Response.json({ items, total: TOTAL });
};

beforeEach(() => {
  respond.mockImplementation(page);
  vi.spyOn(HTMLElement.prototype, "getBoundingClientRect").mockImplementation(function (this: HTMLElement) {
    return { top: 100 * [...this.parentElement!.children].indexOf(this) } as DOMRect;
  });
});

function Opened() {
  const text = useDocumentText("a", "d:25");
  return <div id="drawer">{text.passages.length > 0 && <DocumentText text={text} citedId="d:25" />}</div>;
}

/** Waits until something is drawn. */
const comes = (check: () => void) =>
  vi.waitFor(async () => {
    await act(async () => {});
    check();
  });

async function opened(): Promise<Drawn> {
  const drawn = draw(<Opened />);
  await comes(() => drawn.find(".passage[data-cited]"));
  return drawn;
}
const ends = (drawn: Drawn) => {
  const all = [...drawn.place.querySelectorAll(".passage .markdown")].map((it) => it.textContent!.trim());
  return [all[0], all.at(-1)];
};

it("opens at the cited passage and reads on in both directions, where the reader is", async () => {
  const drawn = await opened();
  expect(ends(drawn)).toEqual(["Passage 20.", "Passage 39."]);
  const earlier = drawn.named("Show earlier");
  earlier.focus();
  await click(earlier);
  await comes(() => expect(ends(drawn)).toEqual(["Passage 0.", "Passage 39."]));
  expect(drawn.find("#drawer").scrollTop).toBe(1900); // 20 more above, and no button
  expect(document.activeElement).toBe(drawn.named("Document"));
  await click(drawn.named("Show more"));
  await comes(() => expect(ends(drawn)).toEqual(["Passage 0.", "Passage 59."]));
  expect(drawn.find("#drawer").scrollTop).toBe(1900);
});

it("says that more could not be read, and tries again", async () => {
  const drawn = await opened();
  respond.mockRejectedValueOnce(new TypeError("away"));
  await click(drawn.named("Show more"));
  expect(drawn.find("[role=alert]").textContent).toBe("Can’t reach the server.");
  await click(drawn.named("Show more"));
  await comes(() => expect(ends(drawn)).toEqual(["Passage 20.", "Passage 59."]));
  expect(drawn.place.querySelector("[role=alert]")).toBeNull();
});

it.each([
  ["https://example.org/a", ["https://example.org/a"]],
  ["https://", []],
  ["javascript:alert(1)", []],
])("leads to the site of a passage, where there is one: %s", (url, links) => {
  const hit = { index: 1, source: "Site", text: "Words.", score: 1, url } as RetrievalHitView;
  const drawn = draw(<SourceDrawer agentId="a" hits={[hit]} index={1} onClose={() => {}} />);
  expect(drawn.find("h2").textContent).toBe("Site");
  expect([...drawn.place.querySelectorAll("a")].map((it) => it.href)).toEqual(links);
});
