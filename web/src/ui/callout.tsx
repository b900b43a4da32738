import "../styles/callout.css";

import { type LucideIcon } from "lucide-react";
import { useId, type ReactNode } from "react";

interface Props {
  icon: LucideIcon;
  title: string;
  className?: string;
  /** Whether it appears after something that the user did: then it is read out. */
  isNews?: boolean;
  children: ReactNode;
}

/** Something that concerns the whole page or server, with what the user can do about it. */
export function Callout({ icon: Icon, title, className = "", isNews = false, children }: Props) {
  const id = useId();
  return (
    <section className={`card callout ${className}`} aria-labelledby={id} role={isNews ? "alert" : undefined}>
      <Icon aria-hidden />
      <div>
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </section>
  );
}
