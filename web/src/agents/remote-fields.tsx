import { type EngineBody } from "@threadkeep/client";

import { Field } from "../ui/field";
import { useAgentWords } from "../words/agents";

/** Where an agent runs, as the form has it. */
export interface Remote {
  runsOn: "here" | "ag-ui";
  url: string;
  /** One `Name: value` per line; a mask stands for a value that is stored. */
  headers: string;
  repeat: boolean;
}

type Engine = Partial<EngineBody> | { kind: string };

/** What the form shows of an agent's engine. */
export function remoteOf(engine: Engine | null | undefined): Remote {
  const { url = "", headers = {}, repeat = false } = engine?.kind === "ag-ui" ? (engine as EngineBody) : {};
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return { runsOn: engine?.kind === "ag-ui" ? "ag-ui" : "here", url, headers: lines.join("\n"), repeat };
}

/** The engine as the server takes it; a header that was removed becomes null, as in a merge patch. */
export function engineOf(remote: Remote, before: Remote): Record<string, unknown> | null {
  if (remote.runsOn === "here") return null;
  const removed = Object.fromEntries(Object.keys(headersIn(before.headers)).map((name) => [name, null]));
  const headers = { ...(before.runsOn === "ag-ui" && removed), ...headersIn(remote.headers) };
  return { kind: "ag-ui", url: remote.url.trim(), headers, repeat: remote.repeat };
}

function headersIn(text: string): Record<string, string> {
  const lines = text.split("\n").map((it) => it.trim());
  return Object.fromEntries(lines.filter(Boolean).map((line) => [line.split(":", 1)[0]!.trim(), line.slice(line.indexOf(":") + 1).trim()]));
}

interface Props {
  values: Remote;
  faultOf: (field: keyof Remote) => string | undefined;
  onChange: <K extends keyof Remote>(field: K, value: Remote[K]) => void;
}

/** Whether Threadkeep runs the agent or another server, and how that is asked. */
export function RemoteFields({ values, faultOf, onChange }: Props) {
  const agentWords = useAgentWords();
  return (
    <>
      <Field label={agentWords.runsOn} hint={values.runsOn === "ag-ui" ? agentWords.runsElsewhereHint : undefined}>
        <select value={values.runsOn} onChange={(event) => onChange("runsOn", event.target.value as Remote["runsOn"])}>
          <option value="here">{agentWords.runsHere}</option>
          <option value="ag-ui">{agentWords.runsElsewhere}</option>
        </select>
      </Field>
      {values.runsOn === "ag-ui" && (
        <>
          <Field label={agentWords.remoteUrl} hint={agentWords.remoteUrlHint} fault={faultOf("url")}>
            <input
              type="url"
              required
              value={values.url}
              maxLength={2000}
              placeholder="https://agents.example.com/ag-ui"
              onChange={(event) => onChange("url", event.target.value)}
            />
          </Field>
          <Field label={agentWords.remoteHeaders} hint={agentWords.remoteHeadersHint} fault={faultOf("headers")}>
            <textarea
              rows={3}
              value={values.headers}
              spellCheck={false}
              autoComplete="off"
              placeholder="Authorization: Bearer …"
              onChange={(event) => onChange("headers", event.target.value)}
            />
          </Field>
          <label className="check">
            <input type="checkbox" checked={values.repeat} onChange={(event) => onChange("repeat", event.target.checked)} />
            {agentWords.mayRepeat}
          </label>
          <p className="hint">{agentWords.mayRepeatHint}</p>
        </>
      )}
    </>
  );
}
