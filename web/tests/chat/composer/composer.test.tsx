import { act } from "react";
import { beforeEach, describe, expect, it, vi } from "vitest";

import { Composer } from "../../../src/chat/composer/composer";
import { forgetDrafts, keepDraft, readDraft } from "../../../src/state/drafts";
import { click, draw, press, type } from "../../draw";

beforeEach(forgetDrafts);

function composer(props: Partial<Parameters<typeof Composer>[0]> = {}) {
  const onSend = vi.fn(async (_: string) => true);
  const drawn = draw(<Composer draftKey="c1" placeholder="" limit={0} running={false} onSend={onSend} {...props} />);
  return { drawn, onSend, box: drawn.named<HTMLTextAreaElement>("Message") };
}

it("sends with Enter, without what is blank around it", async () => {
  const { box, onSend } = composer();
  await type(box, "  hello\n");
  await press(box, "Enter");
  expect(onSend).toHaveBeenCalledExactlyOnceWith("hello", false, []);
  expect(box.value).toBe("");
});

it("breaks the line with Shift+Enter", async () => {
  const { box, onSend } = composer();
  await type(box, "hello");
  const event = await press(box, "Enter", { shiftKey: true });
  expect(event.defaultPrevented).toBe(false);
  expect(onSend).not.toHaveBeenCalled();
});

it("does not send while a character is being chosen", async () => {
  const { box, onSend } = composer();
  await type(box, "ni hao");
  await press(box, "Enter", { isComposing: true });
  expect(onSend).not.toHaveBeenCalled();
});

it("sends nothing that is blank", async () => {
  const { box, drawn, onSend } = composer();
  await type(box, " \n\u3000");
  await press(box, "Enter");
  expect(drawn.named<HTMLButtonElement>("Send").disabled).toBe(true);
  expect(onSend).not.toHaveBeenCalled();
});

it("keeps the text that was not taken", async () => {
  const { box } = composer({ onSend: async () => false });
  await type(box, "hello");
  await press(box, "Enter");
  expect(box.value).toBe("hello");
  expect(readDraft("c1")).toBe("hello");
});

it("takes another text, too, on which Enter was pressed while the first was being stored", async () => {
  const stored: ((taken: boolean) => void)[] = [];
  const onSend = vi.fn((_: string) => new Promise<boolean>((resolve) => stored.push(resolve)));
  const { box } = composer({ onSend });
  await type(box, "first");
  await press(box, "Enter");
  await type(box, "second");
  await press(box, "Enter");
  expect(onSend).toHaveBeenCalledTimes(1);
  await act(async () => {
    stored[0]!(true);
    await vi.waitFor(() => expect(onSend.mock.calls.map(([text]) => text)).toEqual(["first", "second"]));
  });
  await act(async () => stored[1]!(true));
  expect(box.value).toBe("");
});

it("has the text until it is stored elsewhere, takes it once, and leaves what was typed since", async () => {
  let store = (_: boolean) => {};
  const onSend = vi.fn(() => new Promise<boolean>((resolve) => (store = resolve)));
  const { box } = composer({ onSend });
  await type(box, "hello");
  await press(box, "Enter");
  expect(readDraft("c1")).toBe("hello");
  await press(box, "Enter");
  await type(box, "hello and more");
  await act(async () => store(true));
  expect(box.value).toBe("and more");
  expect(onSend).toHaveBeenCalledOnce();
});

it("tells the limit as it nears, counted in characters, and sends nothing above it", async () => {
  const { box, drawn, onSend } = composer({ limit: 10 });
  const told = () => drawn.find("#limit").textContent;
  await type(box, "👩".repeat(8));
  expect(told()).toBe("");
  await type(box, "👩".repeat(9));
  expect(told()).toBe("1 characters left");
  await type(box, "👩".repeat(12));
  expect(told()).toBe("2 characters over the limit");
  await press(box, "Enter");
  expect(onSend).not.toHaveBeenCalled();
});

it("stops what runs, and sends nothing meanwhile", async () => {
  const onStop = vi.fn();
  const { box, drawn, onSend } = composer({ running: true, onStop });
  await type(box, "and then");
  await press(box, "Enter");
  expect(onSend).not.toHaveBeenCalled();
  expect(box.value).toBe("and then");
  await click(drawn.named("Stop"));
  expect(onStop).toHaveBeenCalledOnce();
});

describe("while a turn runs", () => {
  const running = { running: true, queues: true, onStop: vi.fn() };

  it("queues with Enter and steers with a modifier, and says so", async () => {
    const { box, drawn, onSend } = composer(running);
    expect(drawn.find("#limit").textContent).toContain("Enter to queue");
    await type(box, "then this");
    await press(box, "Enter");
    await type(box, "no, that");
    await press(box, "Enter", { ctrlKey: true });
    await type(box, "or that");
    await press(box, "Enter", { metaKey: true });
    expect(onSend.mock.calls).toEqual([["then this", false, []], ["no, that", true, []], ["or that", true, []]]);
  });

  it("has buttons for both beside the one that stops", async () => {
    const { box, drawn, onSend } = composer(running);
    expect(drawn.allNamed("Add to queue")).toEqual([]);
    await type(box, "then this");
    await click(drawn.named("Add to queue"));
    await type(box, "no, that");
    await click(drawn.named("Add to the running answer"));
    expect(onSend.mock.calls).toEqual([["then this", false, []], ["no, that", true, []]]);
    expect(drawn.named("Stop").isConnected).toBe(true);
  });

  it("is stopped with Escape, once", async () => {
    const onStop = vi.fn();
    const { box, drawn } = composer({ ...running, onStop });
    await press(box, "Escape", { isComposing: true });
    expect(onStop).not.toHaveBeenCalled();
    await press(box, "Escape");
    drawn.again(<Composer draftKey="c1" placeholder="" limit={0} onSend={async () => true} {...running} stopping onStop={onStop} />);
    await press(box, "Escape");
    expect(onStop).toHaveBeenCalledOnce();
  });

  it("that waits for its user, it says that a message ends it, and steers nothing", async () => {
    const { box, drawn, onSend } = composer({ ...running, waiting: true });
    expect(drawn.find("#limit").textContent).toContain("cancels it");
    await type(box, "never mind");
    expect(drawn.allNamed("Add to the running answer")).toEqual([]);
    expect(drawn.named("Send").isConnected).toBe(true);
    await press(box, "Enter", { ctrlKey: true });
    expect(onSend).toHaveBeenCalledExactlyOnceWith("never mind", false, []);
  });
});

it("has a draft for each conversation, and stores it when the user leaves", async () => {
  const { box, drawn, onSend } = composer();
  await type(box, "half a thought");
  drawn.again(<Composer draftKey="c2" placeholder="" limit={0} running={false} onSend={onSend} />);
  expect(box.value).toBe("");
  drawn.again(<Composer draftKey="c1" placeholder="" limit={0} running={false} onSend={onSend} />);
  expect(box.value).toBe("half a thought");
  expect(localStorage.getItem("threadkeep.draft.c1")).toBeNull();
  window.dispatchEvent(new Event("pagehide"));
  expect(localStorage.getItem("threadkeep.draft.c1")).toBe("half a thought");
});

describe("editing", () => {
  const editing = (onSend: (text: string) => Promise<boolean>, onCancelEdit?: () => void) => (
    <Composer
      draftKey={onCancelEdit ? "c1.m1" : "c1"}
      placeholder=""
      limit={0}
      running={false}
      onCancelEdit={onCancelEdit}
      onSend={onSend}
    />
  );

  it("has the message's text, says so, and is left with Escape", async () => {
    keepDraft("c1", "half a thought");
    keepDraft("c1.m1", "What is gravty?");
    const onCancel = vi.fn();
    const drawn = draw(editing(async () => true));
    const box = drawn.named<HTMLTextAreaElement>("Message");
    drawn.again(editing(async () => true, onCancel));
    expect(box.value).toBe("What is gravty?");
    expect(document.activeElement).toBe(box);
    expect(drawn.text).toContain("Editing a message");
    await press(box, "Escape", { isComposing: true });
    expect(onCancel).not.toHaveBeenCalled();
    await press(box, "Escape");
    expect(onCancel).toHaveBeenCalledOnce();
    drawn.again(editing(async () => true));
    expect(box.value).toBe("half a thought");
    expect(drawn.text).not.toContain("Editing");
  });

  it("keeps what was typed where the server refuses, and puts it nowhere else", async () => {
    keepDraft("c1", "half a thought");
    const drawn = draw(editing(async () => false, () => {}));
    const box = drawn.named<HTMLTextAreaElement>("Message");
    await type(box, "What is gravity?");
    await press(box, "Enter");
    expect(box.value).toBe("What is gravity?");
    let refuse = (_: boolean) => {};
    drawn.again(editing(() => new Promise((resolve) => (refuse = resolve)), () => {}));
    await press(box, "Enter");
    drawn.again(editing(async () => true)); // one has left the editing meanwhile
    await act(async () => refuse(false));
    expect(box.value).toBe("half a thought");
    expect(readDraft("c1.m1")).toBe("What is gravity?");
  });
});

it("keeps a draft that is too long for the browser for as long as the page is open", () => {
  const full = vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  keepDraft("c1", "long");
  window.dispatchEvent(new Event("pagehide"));
  full.mockRestore();
  expect(readDraft("c1")).toBe("long");
});
