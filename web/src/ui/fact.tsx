import "../styles/facts.css";

import { type ReactNode } from "react";

interface Props {
  name: string;
  value: ReactNode;
  /** Said of the value in small letters. */
  note?: string;
  /** Whether it has a line of its own. */
  wide?: boolean;
}

/** A name and its value, in a list of facts. */
export function Fact({ name, value, note, wide }: Props) {
  return (
    <div className={wide ? "wide" : undefined}>
      <dt>{name}</dt>
      <dd>
        {value}
        {note && <small> {note}</small>}
      </dd>
    </div>
  );
}
