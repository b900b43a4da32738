import { ArrowLeft, Menu } from "lucide-react";
import { useEffect, type ReactNode } from "react";

import { useWords } from "../words";
import { ApprovalsMenu } from "./approvals-menu";

interface Props {
  title: string;
  subtitle?: ReactNode;
  onMenu: () => void;
  /** The page above this one. */
  back?: { href: string; label: string };
  children?: ReactNode;
}

export function TopBar({ title, subtitle, onMenu, back, children }: Props) {
  const words = useWords();
  // The browser's tab says where the user is, too.
  useEffect(() => {
    document.title = title ? `${title} · Threadkeep` : "Threadkeep";
  }, [title]);
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
      <ApprovalsMenu />
      {children && <div className="tools">{children}</div>}
    </header>
  );
}
