import { type LucideIcon } from "lucide-react";

interface Props {
  icon: LucideIcon;
  label: string;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
}

/** A button that shows a picture and has a name. */
export function IconButton({ icon: Icon, label, onClick, pressed, disabled }: Props) {
  return (
    <button
      type="button"
      className="icon"
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon aria-hidden />
    </button>
  );
}
