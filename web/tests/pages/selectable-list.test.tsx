import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { ArchivePage } from "../../src/pages/archive-page";
import { useConversationsByStatus } from "../../src/pages/use-conversations-by-status";
import { respond, click, draw } from "../draw";

let ids: string[];
let reads: string[];

/** The server has pages of two. */
beforeEach(() => {
  ids = ["c5", "c4", "c3", "c2", "c1"];
  reads = [];
  respond.mockImplementation(async (url, { method = "GET" }) => {
    const id = url.pathname.split("/").at(-1)!;
    if (method === "PATCH") {
      ids = ids.filter((it) => it !== id);
      return Response.json({ id, status: "active" });
    }
    if (url.searchParams.get("status") !== "archived") return Response.json({ items: [], nextCursor: null });
    const from = Number(url.searchParams.get("cursor") ?? 0);
    reads.push(String(from));
    const items = ids.slice(from, from + 2).map((it) => ({ id: it, title: it, status: "archived", updatedAt: "2026-01-01" }));
    return Response.json({ items, nextCursor: from + 2 < ids.length ? String(from + 2) : null });
  });
});

function Titles() {
  const { list, again, more } = useConversationsByStatus("archived");
  return (
    <>
      <p>{list.items.map((it) => it.title).join(" ")}</p>
      <button type="button" onClick={() => void more()}>
        More
      </button>
      <button type="button" onClick={() => void again()}>
        Again
      </button>
    </>
  );
}

it("reads the next page once however often it is asked for, and all pages again", async () => {
  const drawn = draw(<Titles />);
  await vi.waitFor(() => expect(drawn.find("p").textContent).toBe("c5 c4"));
  await act(async () => {
    drawn.named("More").click();
    drawn.named("More").click();
  });
  await vi.waitFor(() => expect(drawn.find("p").textContent).toBe("c5 c4 c3 c2"));
  expect(reads).toEqual(["0", "2"]);
  ids = ids.filter((it) => it !== "c4");
  await click(drawn.named("Again"));
  await vi.waitFor(() => expect(drawn.find("p").textContent).toBe("c5 c3 c2 c1"));
});

it("gives the focus to the next row when one is gone", async () => {
  vi.stubGlobal("IntersectionObserver", class {
    observe() {}
    disconnect() {}
  });
  const drawn = draw(<ArchivePage onMenu={() => {}} />);
  await vi.waitFor(() => drawn.named("Unarchive c5"));
  drawn.named("Unarchive c5").focus();
  await click(drawn.named("Unarchive c5"));
  await vi.waitFor(() => expect(drawn.allNamed("Unarchive c5")).toEqual([]));
  await vi.waitFor(() => expect(document.activeElement?.textContent).toBe("c4"));
});
