import { type AgentDetailView, type AgentPatch, type AgentToolsView, type McpServerView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { useCallback, useEffect, useRef, type ReactNode } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useForm } from "../state/use-form";
import { describeProblem } from "../ui/problem-bar";
import { SwitchRow } from "../ui/switch-row";
import { useWords } from "../words";
import { usePermissionWords } from "../words/permissions";
import { AccessChoice } from "./access-choice";
import { PermissionRow } from "./permission-row";
import { ALL, choiceFor, OF_CLIENTS, otherRules, patchOf, withAccess, type Rules } from "./permissions";
import { SaveRow } from "./save-row";
import { ServerPermissions } from "./server-permissions";
import { ToolPermission } from "./tool-permission";

interface Props {
  agent: AgentDetailView;
  onSave: (patch: AgentPatch) => Promise<void>;
  onProblem: (error: unknown) => void;
}

interface Permissions {
  tools: Rules;
  askUser: boolean;
  clientTools: boolean;
  /** The servers whose annotations are trusted. */
  trusted: readonly string[];
}

/** What the agent may do by itself: a rule for each tool, for each server, and for the rest. */
export function AgentPermissions({ agent, onSave, onProblem }: Props) {
  const words = useWords();
  const permissionWords = usePermissionWords();
  const settings = agent.settings!;
  const servers = (agent.mcpServers ?? []).filter((it) => it.source === "user");
  const kept: Permissions = {
    tools: settings.tools,
    askUser: settings.askUser,
    clientTools: settings.clientTools ?? true,
    trusted: servers.filter((it) => it.trustAnnotations).map((it) => it.name),
  };
  const { values, changes, isChanged, isSaving, set, save } = useForm<Permissions>("permissions", kept);
  const { loaded, again } = useLoaded(
    useCallback((signal: AbortSignal) => api.get<AgentToolsView>(`/api/agents/${agent.id}/tools`, {}, signal), [agent.id]),
  );
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed") return <p className="hint">{describeProblem(words, loaded.problem)}</p>;
  const { items: tools } = loaded.value;
  const names = servers.map((it) => it.name);
  const builtIn = tools.filter((it) => !names.includes(it.server) && it.server !== "user");
  const others = otherRules(values.tools, tools, names);
  const rule = (name: string, label: string, canReset = true) => (
    <AccessChoice
      label={label}
      choice={choiceFor(values.tools, name)}
      canReset={canReset}
      onChoose={(access) => set("tools", withAccess(values.tools, name, access))}
    />
  );
  const trust = (server: McpServerView, isTrusted: boolean) =>
    set("trusted", isTrusted ? [...values.trusted, server.name] : values.trusted.filter((it) => it !== server.name));
  return (
    <form
      className="form permissions"
      onSubmit={(event) => {
        event.preventDefault();
        save(() => onSave({ settings: bodyOf(kept, changes) })).catch(onProblem);
      }}
    >
      <p className="hint">{permissionWords.intro}</p>
      <section className="card permission-card" aria-label={permissionWords.general}>
        <PermissionRow title={permissionWords.all} hint={permissionWords.allHint}>
          {rule(ALL, permissionWords.all, false)}
        </PermissionRow>
        <SwitchRow title={permissionWords.askUser} hint={permissionWords.askUserHint} isOn={values.askUser} onChange={(on) => set("askUser", on)} />
        <SwitchRow
          title={permissionWords.clientTools}
          hint={permissionWords.clientToolsHint}
          isOn={values.clientTools}
          onChange={(on) => set("clientTools", on)}
        />
        {values.clientTools && (
          <PermissionRow title={permissionWords.clientAccess} isPart>
            {rule(OF_CLIENTS, permissionWords.clientAccess, false)}
          </PermissionRow>
        )}
      </section>
      {servers.map((server) => (
        <ServerPermissions
          key={server.name}
          agentId={agent.id}
          server={server}
          tools={tools.filter((it) => it.server === server.name)}
          rules={values.tools}
          isTrusted={values.trusted.includes(server.name)}
          onTrust={(on) => trust(server, on)}
          onRules={(rules) => set("tools", rules)}
          onConnected={() => void again()}
        />
      ))}
      {!servers.length && <p className="hint">{permissionWords.noServers}</p>}
      <details className="card permission-card">
        <summary>
          <ChevronRight aria-hidden className="fold" />
          <span>{permissionWords.builtIn}</span>
          <small>{permissionWords.toolCount(builtIn.length)}</small>
        </summary>
        <ul>
          {builtIn.map((tool) => (
            <ToolPermission key={tool.server + tool.name} tool={tool} rules={values.tools} isTrusted onRules={(rules) => set("tools", rules)} />
          ))}
        </ul>
      </details>
      <OtherRules names={others} rule={(name) => rule(name, name)} />
      <SaveRow label={words.save} isChanged={isChanged} isSaving={isSaving} />
    </form>
  );
}

/** Rules for what isn't there now. A rule that is reset leaves, and the focus goes to what saves that. */
function OtherRules({ names, rule }: { names: readonly string[]; rule: (name: string) => ReactNode }) {
  const permissionWords = usePermissionWords();
  const count = useRef(names.length);
  useEffect(() => {
    if (names.length < count.current && document.activeElement === document.body)
      document.querySelector<HTMLElement>(".permissions > .save .primary")?.focus();
    count.current = names.length;
  }, [names.length]);
  if (!names.length) return null;
  return (
    <section className="card permission-card" aria-label={permissionWords.others}>
      <PermissionRow title={permissionWords.others} hint={permissionWords.othersHint} />
      {names.map((name) => (
        <PermissionRow key={name} title={<code>{name}</code>}>
          {rule(name)}
        </PermissionRow>
      ))}
    </section>
  );
}

/** What was changed, as the server takes it. */
function bodyOf(kept: Permissions, { tools, trusted, ...plain }: Partial<Permissions>) {
  const retold = trusted && [...trusted, ...kept.trusted].filter((it) => trusted.includes(it) !== kept.trusted.includes(it));
  return {
    ...plain,
    ...(tools && { tools: patchOf(kept.tools, tools) }),
    ...(retold && { mcpServers: Object.fromEntries(retold.map((it) => [it, { trustAnnotations: trusted.includes(it) }])) }),
  };
}
