import { cloneElement, useEffect, useId, type ReactElement, type ReactNode } from "react";

interface Props {
  label: string;
  hint?: ReactNode;
  /** What is wrong with what was filled in. */
  fault?: string;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean }>;
}

/** Something to fill in, with its name and a word of help; a field with a fault takes the focus. */
export function Field({ label, hint, fault, children }: Props) {
  const id = useId();
  useEffect(() => {
    if (fault) document.getElementById(id)?.focus();
  }, [fault, id]);
  const about = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {cloneElement(children, {
        id,
        "aria-describedby": about || undefined,
        "aria-invalid": fault ? true : children.props["aria-invalid"],
      })}
      {hint && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {fault && (
        <p className="wrong" id={`${id}-fault`}>
          {fault}
        </p>
      )}
    </div>
  );
}
