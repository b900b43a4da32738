import { useId, useState, type KeyboardEvent, type ReactNode } from "react";

import { useWords } from "../words";

interface Props {
  tabs: { name: string; content: ReactNode; isChanged?: boolean }[];
}

/** Tabs; each keeps what was typed on it. */
export function Tabs({ tabs }: Props) {
  const words = useWords();
  const id = useId();
  const [open, setOpen] = useState(0);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set([0]));
  const show = (index: number) => {
    setOpen(index);
    setOpened(new Set(opened).add(index));
    document.getElementById(`${id}-tab-${index}`)?.scrollIntoView({ inline: "nearest", block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = {
      ArrowRight: (open + 1) % tabs.length,
      ArrowLeft: (open - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
    document.getElementById(`${id}-tab-${next}`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" onKeyDown={onKeyDown}>
        {tabs.map(({ name, isChanged }, index) => (
          <button
            key={index}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === open}
            aria-controls={opened.has(index) ? `${id}-panel-${index}` : undefined}
            tabIndex={index === open ? 0 : -1}
            onClick={() => show(index)}
          >
            {name}
            {isChanged && <span className="changed" role="img" aria-label={words.unsavedChanges} />}
          </button>
        ))}
      </div>
      {tabs.map(
        ({ content }, index) =>
          opened.has(index) && (
            <div
              key={index}
              className="content"
              role="tabpanel"
              id={`${id}-panel-${index}`}
              aria-labelledby={`${id}-tab-${index}`}
              tabIndex={-1}
              hidden={index !== open}
            >
              {content}
            </div>
          ),
      )}
    </>
  );
}
