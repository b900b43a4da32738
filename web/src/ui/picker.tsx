import { ChevronsUpDown } from "lucide-react";
import { type ReactNode, type RefObject } from "react";

import { Menu } from "./menu";
import { type MenuGroup } from "./menu-list";

interface Props {
  /** What is chosen here. */
  name: string;
  shown: string;
  face?: ReactNode;
  groups: readonly MenuGroup[];
  disabled?: boolean;
  button?: RefObject<HTMLButtonElement | null>;
  /** A field sets these. */
  id?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** A field that takes one of a menu's items. */
export function Picker({ name, shown, face, ...menu }: Props) {
  return (
    <Menu label={`${name}: ${shown}`} className="picker-field" hasTip={false} {...menu}>
      {face}
      <span dir="auto">{shown}</span>
      <ChevronsUpDown aria-hidden />
    </Menu>
  );
}
