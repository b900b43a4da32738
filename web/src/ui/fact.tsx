import "../styles/facts.css";

interface Props {
  name: string;
  value: string;
  /** Whether it has a line of its own. */
  wide?: boolean;
}

/** A name and its value, in a list of facts. */
export function Fact({ name, value, wide }: Props) {
  return (
    <div className={wide ? "wide" : undefined}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
