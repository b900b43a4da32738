import { Check, type LucideIcon } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, type KeyboardEvent, type ReactNode, type RefObject } from "react";

import { useEscape } from "../hooks/use-escape";
import { placePopover } from "./place-popover";

export interface MenuItem {
  label: string;
  /** A second line, in small letters. */
  detail?: string;
  icon?: LucideIcon;
  /** A picture in place of an icon. */
  face?: ReactNode;
  run: () => void;
  /** For one of several choices: whether it is the chosen one. */
  checked?: boolean;
  isDangerous?: boolean;
}

/** Items between two lines; some groups have a name. */
export interface MenuGroup {
  label?: string;
  items: readonly MenuItem[];
}

interface Props {
  label: string;
  groups: readonly MenuGroup[];
  button: RefObject<HTMLButtonElement | null>;
  focused: "first" | "last";
  onClose: () => void;
}

/** The open menu, above everything else and beside its button. */
export function MenuList({ label, groups, button, focused, onClose }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const itemsOf = () => [...place.current!.querySelectorAll<HTMLElement>("button")];
  useLayoutEffect(() => {
    const list = place.current!;
    list.showPopover?.();
    itemsOf().at(focused === "first" ? 0 : -1)?.focus();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once, when it opens
  }, []);
  const count = groups.reduce((sum, { items }) => sum + items.length, 0);
  useLayoutEffect(() => placePopover(place.current!, button.current!), [count, button]);
  useEffect(() => {
    const closing = new AbortController();
    const options = { capture: true, signal: closing.signal };
    const closeOutside = ({ target }: Event) => {
      const isOurs = target instanceof Node && (place.current?.contains(target) || button.current?.contains(target));
      if (!isOurs) onClose();
    };
    const { top } = button.current!.getBoundingClientRect();
    // Only if its button moves: a streaming reply scrolls its own list, and the browser reports late what it scrolled before.
    const closeMoved = ({ type }: Event) => {
      if (type === "scroll" && button.current?.getBoundingClientRect().top === top) return;
      if (place.current?.contains(document.activeElement)) button.current?.focus({ preventScroll: true });
      onClose();
    };
    window.addEventListener("pointerdown", closeOutside, options);
    window.addEventListener("scroll", closeMoved, options);
    window.addEventListener("resize", closeMoved, options);
    return () => closing.abort();
  }, [button, onClose]);

  const leave = () => {
    button.current?.focus();
    onClose();
  };
  useEscape(true, leave);
  const onKeyDown = (event: KeyboardEvent) => {
    const items = itemsOf();
    const at = items.indexOf(document.activeElement as HTMLElement);
    event.stopPropagation();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") return onClose();
    if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
    else if (event.key === "ArrowUp") items.at(at - 1)?.focus();
    else if (event.key === "Home") items[0]?.focus();
    else if (event.key === "End") items.at(-1)?.focus();
    else if (/^\S$/u.test(event.key)) beginningWith(event.key, [...items.slice(at + 1), ...items.slice(0, at + 1)])?.focus();
    else return;
    event.preventDefault();
  };
  const run = (item: MenuItem) => {
    leave();
    item.run();
  };
  return (
    <div ref={place} className="menu" role="menu" aria-label={label} popover="manual" onKeyDown={onKeyDown}>
      {groups
        .filter(({ items }) => items.length)
        .map((group, index) => (
          <div key={index} role="group" aria-label={group.label}>
            {group.label && <small aria-hidden>{group.label}</small>}
            {group.items.map((item, nth) => (
              <button
                key={nth}
                type="button"
                role={item.checked === undefined ? "menuitem" : "menuitemradio"}
                aria-checked={item.checked}
                tabIndex={-1}
                className={item.isDangerous ? "danger" : undefined}
                onPointerMove={(event) => event.currentTarget.focus({ preventScroll: true })}
                onClick={() => run(item)}
              >
                {item.icon ? <item.icon aria-hidden /> : item.face}
                <span dir="auto">
                  {item.label}
                  {item.detail && <small dir="auto">{item.detail}</small>}
                </span>
                {item.checked && <Check aria-hidden className="chosen" />}
              </button>
            ))}
          </div>
        ))}
    </div>
  );
}

function beginningWith(letter: string, items: readonly HTMLElement[]): HTMLElement | undefined {
  return items.find((it) => it.textContent?.trim().toLowerCase().startsWith(letter.toLowerCase()));
}
