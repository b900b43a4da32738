import { useId, useState, type KeyboardEvent, type ReactNode } from "react";

interface Props {
  tabs: { name: string; content: ReactNode }[];
}

export function Tabs({ tabs }: Props) {
  const id = useId();
  const [open, setOpen] = useState(0);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (open + step + tabs.length) % tabs.length;
    setOpen(next);
    document.getElementById(`${id}-tab-${next}`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" onKeyDown={onKeyDown}>
        {tabs.map(({ name }, index) => (
          <button
            key={index}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === open}
            aria-controls={`${id}-panel`}
            tabIndex={index === open ? 0 : -1}
            onClick={(event) => {
              setOpen(index);
              event.currentTarget.scrollIntoView({ inline: "nearest", block: "nearest" });
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div className="content" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${open}`} tabIndex={-1}>
        {tabs[open]?.content}
      </div>
    </>
  );
}
