import { ArrowLeft, Menu, SquarePen } from "lucide-react";
import { useEffect, type ReactNode } from "react";

import { setPlace } from "../state/page-title";
import { go } from "../state/route";
import { useWords } from "../words";
import { LazyApprovalsBell } from "./requests/lazy-request";

interface Props {
  title: string;
  subtitle?: ReactNode;
  /** The form that changes the title, while it is open. */
  renaming?: ReactNode;
  onMenu: () => void;
  /** The page above this one. */
  back?: { href: string; label: string };
  children?: ReactNode;
}

export function TopBar({ title, subtitle, renaming, onMenu, back, children }: Props) {
  const words = useWords();
  // The browser's tab says where the user is, too.
  useEffect(() => setPlace(title), [title]);
  return (
    <header className="top-bar">
      <button type="button" className="icon narrow-only" onClick={onMenu} aria-label={words.menu}>
        <Menu aria-hidden />
      </button>
      {back && (
        <a className="back" href={back.href} aria-label={back.label} title={back.label}>
          <ArrowLeft aria-hidden />
        </a>
      )}
      <div className="heading">
        {title && (
          <h1 dir="auto" title={title}>
            {title}
          </h1>
        )}
        {subtitle && <small>{subtitle}</small>}
      </div>
      {renaming}
      {title && (
        <button
          type="button"
          className="icon narrow-only"
          aria-label={words.newConversation}
          data-tip={words.newConversation}
          onClick={() => go({ name: "new", agentId: null })}
        >
          <SquarePen aria-hidden />
        </button>
      )}
      <LazyApprovalsBell />
      {children && <div className="tools">{children}</div>}
    </header>
  );
}
