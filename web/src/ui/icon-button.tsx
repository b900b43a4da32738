import { type LucideIcon } from "lucide-react";

interface Props {
  icon: LucideIcon;
  label: string;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
  /** Why it is disabled now: its tooltip says so, and it keeps the focus. */
  unavailable?: string;
}

/** A button with an icon and an accessible name. */
export function IconButton({ icon: Icon, label, onClick, pressed, disabled, unavailable }: Props) {
  return (
    <button
      type="button"
      className="icon"
      aria-label={label}
      title={unavailable}
      data-tip={unavailable === undefined ? label : undefined}
      aria-pressed={pressed}
      disabled={disabled}
      aria-disabled={unavailable === undefined ? undefined : true}
      onClick={() => unavailable === undefined && onClick()}
    >
      <Icon aria-hidden />
    </button>
  );
}
