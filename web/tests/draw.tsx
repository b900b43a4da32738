import { act, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { vi } from "vitest";

import { followAll } from "../src/state/following";

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

// As the page does when it starts; once, since the files of tests share it.
followAll();

// A busy machine takes seconds to load a part of the page.
const { waitFor } = vi;
vi.waitFor = (check, options = { timeout: 30_000 }) => waitFor(check, options);

const drawn: { root: Root; place: HTMLElement }[] = [];

export class Drawn {
  constructor(
    private readonly root: Root,
    readonly place: HTMLElement,
  ) {}

  get text(): string {
    return this.place.textContent ?? "";
  }

  /** The one element with this accessible name. */
  named<E extends HTMLElement = HTMLElement>(name: string): E {
    const [found, ...more] = this.allNamed<E>(name);
    if (!found || more.length) throw new Error(`${more.length + (found ? 1 : 0)} elements are named ${name}: ${this.place.innerHTML}`);
    return found;
  }

  allNamed<E extends HTMLElement = HTMLElement>(name: string): E[] {
    const all = [...this.place.querySelectorAll<E>("[aria-label], button, p[role]")];
    return all.filter((it) => (it.getAttribute("aria-label") ?? it.textContent) === name);
  }

  find<E extends HTMLElement = HTMLElement>(selector: string): E {
    const found = this.place.querySelector<E>(selector);
    if (!found) throw new Error(`${selector} is not in ${this.place.innerHTML}`);
    return found;
  }

  again(node: ReactNode): void {
    act(() => this.root.render(node));
  }
}

export function draw(node: ReactNode): Drawn {
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place);
  drawn.push({ root, place });
  act(() => root.render(node));
  return new Drawn(root, place);
}

export async function click(element: HTMLElement): Promise<void> {
  await act(async () => element.click());
}

export async function press(element: HTMLElement, key: string, how: KeyboardEventInit = {}): Promise<KeyboardEvent> {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...how });
  await act(async () => void element.dispatchEvent(event));
  return event;
}

export async function type(element: HTMLTextAreaElement | HTMLInputElement, text: string): Promise<void> {
  // React watches the property, so that of the element's class is set.
  const { prototype } = element instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
  Object.getOwnPropertyDescriptor(prototype, "value")!.set!.call(element, text);
  await act(async () => void element.dispatchEvent(new Event("input", { bubbles: true })));
}

/** Until something that the page does by and by is seen. */
export async function seen(check: () => void): Promise<void> {
  await vi.waitFor(async () => {
    await act(() => new Promise((resume) => setTimeout(resume, 10)));
    check();
  });
}

/** The server: it never responds, unless a test says how. */
export const respond = vi.fn((_: URL, __: RequestInit) => new Promise<Response>(() => {}));

/** Takes away what was drawn. */
export function undraw(): void {
  for (const { root, place } of drawn.splice(0)) {
    act(() => root.unmount());
    place.remove();
  }
}
