import { type AgentToolView } from "@threadkeep/client";

import { usePermissionWords } from "../words/permissions";
import { AccessChoice } from "./access-choice";
import { choiceFor, effectOf, toolRule, withAccess, type Rules } from "./permissions";

interface Props {
  tool: AgentToolView;
  rules: Rules;
  /** Whether what its server says about it counts. */
  isTrusted: boolean;
  onRules: (rules: Rules) => void;
}

/** A tool with what it does, and whether it may run. */
export function ToolPermission({ tool, rules, isTrusted, onRules }: Props) {
  const permissionWords = usePermissionWords();
  const rule = toolRule(tool);
  const effect = effectOf(rules, tool, isTrusted);
  const isClaim = effect === "write" && tool.effect !== "write";
  return (
    <li className="setting-row">
      <div>
        <p>
          <code>{tool.name}</code>
          <span className="badge" data-effect={effect} title={permissionWords.effectHints[effect]}>
            {isClaim ? permissionWords.claims[tool.effect as "read" | "idempotent"] : permissionWords.effects[effect]}
          </span>
        </p>
        {tool.description && (
          <p className="hint about" title={tool.description} dir="auto">
            {tool.description}
          </p>
        )}
      </div>
      <AccessChoice
        label={tool.name}
        choice={choiceFor(rules, rule)}
        onChoose={(access) => onRules(withAccess(rules, rule, access))}
      />
    </li>
  );
}
