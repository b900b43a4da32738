import { useEffect, useId, useState, type KeyboardEvent, type ReactNode } from "react";

import { useWords } from "../words";

interface Props<Id> {
  tabs: { id: Id; name: string; content: ReactNode; isChanged?: boolean }[];
  open: Id;
  onOpen: (id: Id) => void;
}

/** Tabs; each keeps what was typed on it. */
export function Tabs<Id>({ tabs, open: openId, onOpen }: Props<Id>) {
  const words = useWords();
  const id = useId();
  const open = Math.max(0, tabs.findIndex((it) => it.id === openId));
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set([open]));
  if (!opened.has(open)) setOpened(new Set(opened).add(open));
  useEffect(() => {
    document.getElementById(`${id}-tab-${open}`)?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [id, open]);
  const onKeyDown = (event: KeyboardEvent) => {
    const next = {
      ArrowRight: (open + 1) % tabs.length,
      ArrowLeft: (open - 1 + tabs.length) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onOpen(tabs[next]!.id);
    document.getElementById(`${id}-tab-${next}`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" onKeyDown={onKeyDown}>
        {tabs.map(({ id: tabId, name, isChanged }, index) => (
          <button
            key={index}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === open}
            aria-controls={opened.has(index) ? `${id}-panel-${index}` : undefined}
            tabIndex={index === open ? 0 : -1}
            onClick={() => onOpen(tabId)}
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
