import { type KeptFile, type OutgoingFile, type UploadedFileView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { setToken } from "../../../src/api/api";
import { Composer } from "../../../src/chat/composer/composer";
import { attachmentsOf, forgetAttachments, keepFiles, markExpired } from "../../../src/state/attachments";
import { forgetDrafts, readDraft } from "../../../src/state/drafts";
import { session } from "../../../src/state/session";
import { arrivalOf } from "../../../src/state/uploads";
import { click, draw, press, type } from "../../draw";
import { outgoing } from "../../outgoing";

/** A request to which a test responds. */
class Upload {
  static all: Upload[] = [];
  static named(name: string): Upload {
    return Upload.all.findLast((it) => it.name === name)!;
  }

  upload: { onprogress?: (event: { loaded: number; total: number }) => void } = {};
  onload = () => {};
  onerror = () => {};
  onabort = () => {};
  status = 0;
  responseText = "";
  name = "";
  isAborted = false;

  open(): void {}
  setRequestHeader(): void {}
  getResponseHeader(): null {
    return null;
  }
  send(body: FormData): void {
    this.name = (body.get("files") as File).name;
    Upload.all.push(this);
  }
  abort(): void {
    this.isAborted = true;
    this.onabort();
  }

  async respond(status: number, body: object): Promise<void> {
    this.status = status;
    this.responseText = JSON.stringify(body);
    await act(async () => this.onload());
  }
  async take(more: Partial<UploadedFileView> = {}): Promise<void> {
    await this.respond(201, { items: [{ id: `id-${this.name}`, fileName: this.name, mediaType: "text/plain", size: 4, ...more }] });
  }
  async refuse(status: number, code: string, message: string): Promise<void> {
    await this.respond(status, { error: { code, message } });
  }
}

beforeEach(() => {
  forgetDrafts();
  forgetAttachments();
  Upload.all = [];
  vi.stubGlobal("XMLHttpRequest", Upload);
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
});

afterEach(() => act(forgetAttachments));

const kept = (fileName: string): KeptFile => ({ fileId: `id-${fileName}`, fileName, mediaType: "text/plain", size: 4 });

function composer(props: Partial<Parameters<typeof Composer>[0]> = {}) {
  const onSend = vi.fn(async (_: string, __: boolean, ___: readonly OutgoingFile[]) => true);
  const node = <Composer draftKey="c1" placeholder="" limit={0} running={false} onSend={onSend} {...props} />;
  const drawn = draw(node);
  const names = () => [...drawn.place.querySelectorAll(".attachment")].map((it) => it.getAttribute("title"));
  return { drawn, onSend, names, box: drawn.named<HTMLTextAreaElement>("Message") };
}

/** Waits for what is loaded first. */
async function comes(check: () => void): Promise<void> {
  await vi.waitFor(async () => {
    await act(async () => {});
    check();
  });
}

/** Pastes files; what shows and sends them is loaded with the first. */
async function paste(box: HTMLElement, names: readonly string[], more: Record<string, string> = {}): Promise<Event> {
  const event = new Event("paste", { bubbles: true, cancelable: true });
  const files = names.map((it) => new File(["text"], it, { type: "text/plain" }));
  const clipboardData = { types: ["Files", ...Object.keys(more)], getData: (kind: string) => more[kind] ?? "", files };
  await act(async () => void box.dispatchEvent(Object.assign(event, { clipboardData })));
  if (event.defaultPrevented) await comes(() => expect(document.querySelector(".attachment")).not.toBeNull());
  return event;
}

const told = (place: HTMLElement) => [...place.querySelectorAll(".tray ~ [role=status]")].map((it) => it.textContent).join();

it("sends each file by itself, and a message with those that were taken", async () => {
  const { drawn, box, onSend, names } = composer();
  await paste(box, ["a.txt", "b.txt"]);
  await comes(() => expect(names()).toEqual(["a.txt", "b.txt"]));
  await act(async () => Upload.named("a.txt").upload.onprogress!({ loaded: 1, total: 4 }));
  expect(drawn.named<HTMLProgressElement>("Uploading a.txt").value).toBe(0.25);
  await Upload.named("a.txt").take();
  expect(told(drawn.place)).toBe("");
  await Upload.named("b.txt").take();
  expect(told(drawn.place)).toBe("2 files uploaded");
  await press(box, "Enter");
  expect(onSend).toHaveBeenCalledOnce();
  expect(onSend.mock.calls[0]![2]).toMatchObject([{ kept: kept("a.txt") }, { kept: kept("b.txt") }]);
  expect(names()).toEqual([]);
});

it("keeps what is refused with the server's reason, spoils nothing else, and waits until it is removed", async () => {
  const { drawn, box, onSend, names } = composer();
  await type(box, "Look");
  await paste(box, ["a.txt", "b.png"]);
  await Upload.named("a.txt").take();
  await Upload.named("b.png").refuse(415, "UNSUPPORTED_FILE", "b.png is HTML.");
  expect(drawn.find(".attachment[data-state=failed]").textContent).toContain("b.png is HTML.");
  expect(drawn.allNamed("Retry b.png")).toEqual([]);
  expect(told(drawn.place)).toBe("a.txt uploaded Couldn’t upload b.png: b.png is HTML.");
  await press(box, "Enter");
  expect(onSend).not.toHaveBeenCalled();
  expect(drawn.find("#limit").textContent).toContain("retry the failed file");
  await click(drawn.named("Remove b.png"));
  expect(names()).toEqual(["a.txt"]);
  expect(document.activeElement).toBe(box);
  await press(box, "Enter");
  expect(onSend.mock.calls[0]).toMatchObject(["Look", false, [{ kept: kept("a.txt") }]]);
});

it("sends a message along with a file that could not be uploaded for want of a connection", async () => {
  const { box, onSend, names } = composer();
  await paste(box, ["a.txt"]);
  await act(async () => Upload.named("a.txt").onerror());
  await press(box, "Enter");
  expect(onSend.mock.calls[0]![2]).toMatchObject([{ fileName: "a.txt", kept: null, source: { name: "a.txt" } }]);
  expect(names()).toEqual([]);
});

it("retries after a lost connection", async () => {
  const { drawn, box } = composer();
  await paste(box, ["a.txt"]);
  await act(async () => Upload.named("a.txt").onerror());
  expect(drawn.find(".attachment").textContent).toContain("Check your connection");
  await click(drawn.named("Retry a.txt"));
  expect(Upload.all).toHaveLength(2);
  await Upload.named("a.txt").take();
  expect(drawn.find(".attachment").dataset["state"]).toBe("ready");
});

it("says that an upload was lost where something else responds for the server", async () => {
  const { drawn, box } = composer();
  await paste(box, ["a.txt"]);
  const request = Upload.named("a.txt");
  request.status = 200;
  request.responseText = "<h1>Sign in</h1>";
  await act(async () => request.onload());
  drawn.named("Retry a.txt");
});

it("does not sign out whoever has signed in since, where an upload is refused", async () => {
  session.set({ state: "in", me: { id: "alice", role: "user", installation: "a" } });
  setToken("alice");
  const { box } = composer();
  await paste(box, ["a.txt", "b.txt"]);
  await Upload.named("a.txt").refuse(401, "UNAUTHORIZED", "no");
  expect(session.get()).toEqual({ state: "out", refused: "token" });
  const bob = { state: "in", me: { id: "bob", role: "user", installation: "a" } } as const;
  act(() => session.set(bob));
  act(() => setToken("bob"));
  await Upload.named("b.txt").refuse(401, "UNAUTHORIZED", "no");
  expect(session.get()).toEqual(bob);
  act(() => session.set({ state: "asking" }));
  act(() => setToken(null));
});

it("sends three at a time, and none that was cancelled", async () => {
  const { drawn, box, names } = composer();
  await paste(box, ["a", "b", "c", "d", "e"]);
  expect(Upload.all.map((it) => it.name)).toEqual(["a", "b", "c"]);
  await click(drawn.named("Cancel upload of d"));
  await click(drawn.named("Cancel upload of a"));
  expect(Upload.named("a").isAborted).toBe(true);
  await comes(() => expect(Upload.all.map((it) => it.name)).toEqual(["a", "b", "c", "e"]));
  expect(names()).toEqual(["b", "c", "e"]);
  for (const name of ["b", "c", "e"]) await Upload.named(name).take();
});

describe("a message that is sent while its files are on their way", () => {
  it("takes them along, and each arrives once", async () => {
    const { box, onSend, names } = composer();
    await type(box, "Look");
    await paste(box, ["a.txt"]);
    await comes(() => expect(Upload.all).toHaveLength(1));
    await press(box, "Enter");
    expect([box.value, names()]).toEqual(["", []]);
    const [file] = onSend.mock.calls[0]![2];
    expect(file).toMatchObject({ fileName: "a.txt", kept: null, source: expect.any(File) });
    const arrived = arrivalOf(file!.key);
    await Upload.named("a.txt").take();
    expect(await arrived).toEqual(kept("a.txt"));
    expect(await arrivalOf(file!.key)).toBeNull();
  });

  it("is uploaded anew where the upload broke off", async () => {
    const { box, onSend } = composer();
    await paste(box, ["a.txt"]);
    await comes(() => expect(Upload.all).toHaveLength(1));
    await press(box, "Enter");
    const [file] = onSend.mock.calls[0]![2];
    const arrived = arrivalOf(file!.key);
    await act(async () => Upload.named("a.txt").onerror());
    expect(await arrived).toBeNull();
  });
});

it("queues a message with files that was to steer, and says so", async () => {
  const { drawn, box, onSend } = composer({ running: true, queues: true, onStop: vi.fn() });
  await act(async () => keepFiles("c1", [kept("a.txt")]));
  expect(drawn.find("#limit").textContent).toContain("Files can’t join a running answer");
  expect(drawn.allNamed("Add to the running answer")).toEqual([]);
  await press(box, "Enter", { ctrlKey: true });
  expect(onSend).toHaveBeenCalledExactlyOnceWith("", false, [outgoing(kept("a.txt"))]);
});

it("has the files of a message that was not taken, and marks one that has expired", async () => {
  const onSend = async () => {
    markExpired("id-a.txt", { code: "FILE_NOT_FOUND", message: "gone" });
    return false;
  };
  const { drawn, box, names } = composer({ onSend });
  await act(async () => keepFiles("c1", [kept("a.txt"), kept("b.txt")]));
  await comes(() => expect(names()).toHaveLength(2));
  await type(box, "Look");
  await press(box, "Enter");
  expect(box.value).toBe("Look");
  expect(readDraft("c1")).toBe("Look");
  expect(names()).toEqual(["a.txt", "b.txt"]);
  expect(drawn.find(".attachment[data-state=failed]").textContent).toContain("This file has expired");
});

it("keeps the files of each draft through a switch and a reload", async () => {
  localStorage.setItem("threadkeep.draft-files.c7", JSON.stringify([kept("b.txt")]));
  const { drawn, names, onSend } = composer();
  await act(async () => keepFiles("c1", [kept("a.txt")]));
  await comes(() => expect(names()).toEqual(["a.txt"]));
  drawn.again(<Composer draftKey="c7" placeholder="" limit={0} running={false} onSend={onSend} />);
  expect(names()).toEqual(["b.txt"]);
  drawn.again(<Composer draftKey="c1" placeholder="" limit={0} running={false} onSend={onSend} />);
  expect(names()).toEqual(["a.txt"]);
  expect(JSON.parse(localStorage.getItem("threadkeep.draft-files.c1")!)).toEqual([kept("a.txt")]);
});

it("takes the text of a spreadsheet, not its picture, and leaves other fields alone", async () => {
  const { box } = composer();
  const cells = { "text/html": "<table>", "text/plain": "1\t2" };
  expect((await paste(box, ["image.png"], cells)).defaultPrevented).toBe(false);
  const other = document.body.appendChild(document.createElement("input"));
  expect((await paste(other, ["image.png"])).defaultPrevented).toBe(false);
  other.remove();
  expect(attachmentsOf("c1").get()).toEqual([]);
});

it("takes no more files than a message may have", async () => {
  const { box, names } = composer();
  await paste(box, Array.from({ length: 22 }, (_, index) => `${index}.txt`));
  await comes(() => expect(names()).toHaveLength(20));
  for (let sent = 0; sent < Upload.all.length; sent++) await Upload.all[sent]!.take();
});
