interface Props {
  title: string;
  hint: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

/** Something to turn on and off, with what it does. */
export function SwitchRow({ title, hint, isOn, onChange }: Props) {
  return (
    <label className="setting-row">
      <span>
        <span>{title}</span>
        <span className="hint">{hint}</span>
      </span>
      <input type="checkbox" role="switch" aria-label={title} aria-checked={isOn} checked={isOn} onChange={(event) => onChange(event.target.checked)} />
    </label>
  );
}
