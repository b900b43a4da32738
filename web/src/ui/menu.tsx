import { Fragment, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from "react";

import { MenuList, type MenuGroup } from "./menu-list";

interface Props {
  label: string;
  groups: readonly MenuGroup[];
  className?: string;
  /** Whether it needs a tooltip with its name. */
  hasTip?: boolean;
  onOpen?: () => void;
  disabled?: boolean;
  /** Where its button can be found. */
  button?: RefObject<HTMLButtonElement | null>;
  /** What the button shows. */
  children: ReactNode;
  id?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** A button that opens a menu: arrow keys, first letters, Escape, and a click elsewhere work as in any other program. */
export function Menu({ label, groups, className = "icon", hasTip = true, onOpen, button: given, children, ...attributes }: Props) {
  const own = useRef<HTMLButtonElement>(null);
  const button = given ?? own;
  /** Which item has the focus when the menu opens. */
  const [opened, setOpened] = useState<"first" | "last" | null>(null);
  const open = (focused: "first" | "last") => {
    onOpen?.();
    setOpened(focused);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    event.stopPropagation();
    open(event.key === "ArrowDown" ? "first" : "last");
  };
  return (
    <Fragment>
      <button
        {...attributes}
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        data-tip={hasTip ? label : undefined}
        aria-haspopup="menu"
        aria-expanded={opened !== null}
        onClick={() => (opened ? setOpened(null) : open("first"))}
        onKeyDown={onKeyDown}
      >
        {children}
      </button>
      {opened && (
        <MenuList label={label} groups={groups} button={button} focused={opened} onClose={() => setOpened(null)} />
      )}
    </Fragment>
  );
}
