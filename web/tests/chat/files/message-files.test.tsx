import { filePart, imagesOf, type KeptFile, type Message } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { recording } from "../../../packages/client/tests/recordings";
import { UserMessage } from "../../../src/chat/user-message";
import { viewed } from "../../../src/state/viewed-image";
import { respond, click, draw } from "../../draw";

/** Tells an element that it has come near, where a test says so. */
class Near {
  static all: Near[] = [];
  constructor(readonly tell: (entries: { isIntersecting: boolean }[]) => void) {
    Near.all.push(this);
  }
  observe(): void {}
  disconnect(): void {}
}

beforeEach(() => {
  Near.all = [];
  vi.stubGlobal("IntersectionObserver", Near);
  respond.mockImplementation(async () => new Response("image"));
});

const image = (name: string): KeptFile => ({ fileId: `id-${name}`, fileName: name, mediaType: "image/png", size: 9, width: 640, height: 480 });
const notes: KeptFile = { fileId: "id-notes", fileName: "notes.md", mediaType: "text/markdown", size: 2048 };

function said(text: string, ...files: KeptFile[]): Message {
  const { message } = recording("plain text");
  return { ...message, role: "user", parts: [...files.map(filePart), { type: "text", text, iteration: 0 }] };
}

const drawSaid = (message: Message) => draw(<UserMessage message={message} busy={false} onEdit={() => {}} />);

it("asks for the previews of images that are near, and for nothing else", async () => {
  drawSaid(said("Look", ...Array.from({ length: 50 }, (_, index) => image(`${index}.png`))));
  expect(Near.all).toHaveLength(50);
  expect(respond).not.toHaveBeenCalled();
  await act(async () => Near.all[0]!.tell([{ isIntersecting: false }]));
  await act(async () => Near.all[7]!.tell([{ isIntersecting: true }]));
  expect(respond.mock.calls.map(([url]) => url.href.split("/api/")[1])).toEqual(["files/id-7.png?preview=true"]);
});

it("has a place for an image before it has come, and opens it in full size", async () => {
  const drawn = drawSaid(said("Look", image("a.png"), notes));
  const button = drawn.named("Open a.png");
  expect([button.style.width, button.style.aspectRatio]).toEqual(["320px", "640 / 480"]);
  await act(async () => Near.all[0]!.tell([{ isIntersecting: true }]));
  await vi.waitFor(() => expect(drawn.find<HTMLImageElement>("img").alt).toBe("a.png"));
  await click(button);
  expect(viewed.get()?.fileName).toBe("a.png");
  viewed.set(null);
  expect(drawn.find(".file-chip").textContent).toBe("Open notes.mdMD · 2.0 KB");
});

it("draws no bubble where there are only files", () => {
  expect(drawSaid(said("", notes)).place.querySelector(".bubble")).toBeNull();
});

it("knows the images of a conversation in their order", () => {
  const messages = [said("1", image("a"), notes), said("2", image("b"), { ...image("c"), width: null })];
  expect(imagesOf(messages).map((it) => it.fileName)).toEqual(["a", "b"]);
});
