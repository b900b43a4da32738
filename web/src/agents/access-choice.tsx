import { type ToolAccess } from "@threadkeep/client";
import { Ban, Check, Hand, RotateCcw, type LucideIcon } from "lucide-react";
import { useId, useRef } from "react";

import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { IconButton } from "../ui/icon-button";
import { usePermissionWords } from "../words/permissions";
import { type Choice } from "./permissions";

interface Props {
  /** What the choice is about. */
  label: string;
  choice: Choice;
  /** Whether there is a wider rule to go back to. */
  canReset?: boolean;
  onChoose: (access: ToolAccess | null) => void;
}

const ICONS: Record<ToolAccess, LucideIcon> = { allow: Check, ask: Hand, deny: Ban };

/** Allow, ask, or never; softer where a wider rule says so. */
export function AccessChoice({ label, choice, canReset = true, onChoose }: Props) {
  const permissionWords = usePermissionWords();
  const name = useId();
  const group = useRef<HTMLDivElement>(null);
  const isResettable = choice.isOwn && canReset;
  useFocusAfterClose(isResettable, () => group.current!.querySelector(":checked"));
  return (
    <div className="access">
      {isResettable && (
        <IconButton icon={RotateCcw} label={permissionWords.useDefault(label)} onClick={() => onChoose(null)} />
      )}
      <div ref={group} className="segments" role="radiogroup" aria-label={label} data-own={choice.isOwn || undefined}>
        {(["allow", "ask", "deny"] as const).map((access) => {
          const Icon = ICONS[access];
          return (
            <label key={access} data-access={access}>
              <input type="radio" name={name} className="unseen" checked={choice.access === access} onChange={() => onChoose(access)} />
              <Icon aria-hidden />
              {permissionWords.access[access]}
            </label>
          );
        })}
      </div>
    </div>
  );
}
