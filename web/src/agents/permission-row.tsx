import { type ReactNode } from "react";

interface Props {
  title: ReactNode;
  hint?: ReactNode;
  /** Whether it belongs to the row above. */
  isPart?: boolean;
  children?: ReactNode;
}

/** A choice with its name. */
export function PermissionRow({ title, hint, isPart = false, children }: Props) {
  return (
    <div className="setting-row" data-part={isPart || undefined}>
      <div>
        <p>{title}</p>
        {hint && <p className="hint">{hint}</p>}
      </div>
      {children}
    </div>
  );
}
