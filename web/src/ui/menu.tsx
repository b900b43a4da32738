import { type LucideIcon } from "lucide-react";
import { Fragment, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

import { MenuList } from "./menu-list";

export interface MenuItem {
  label: string;
  /** A second line, in small letters. */
  detail?: string;
  icon?: LucideIcon;
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
  className?: string;
  /** Whether it needs a tooltip with its name. */
  hasTip?: boolean;
  onOpen?: () => void;
  /** What the button shows. */
  children: ReactNode;
}

/** A button that opens a menu: arrow keys, first letters, Escape, and a click elsewhere work as in any other program. */
export function Menu({ label, groups, className = "icon", hasTip = true, onOpen, children }: Props) {
  const button = useRef<HTMLButtonElement>(null);
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
