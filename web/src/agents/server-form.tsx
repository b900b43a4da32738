import { ApiError, type McpServerSettingsView } from "@threadkeep/client";
import { useState } from "react";

import { useUnsaved } from "../state/unsaved";
import { Field } from "../ui/field";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

type Servers = Record<string, McpServerSettingsView>;

interface Props {
  onAdd: (servers: Servers) => Promise<void>;
  onProblem: (error: unknown) => void;
  onCancel: () => void;
}

/** The servers in pasted JSON, with or without the outer `mcpServers`; null if it isn't that. */
export function serversOf(text: string): Servers | null {
  try {
    const given: unknown = JSON.parse(text);
    if (typeof given !== "object" || given === null || Array.isArray(given)) return null;
    const servers = "mcpServers" in given ? given.mcpServers : given;
    if (typeof servers !== "object" || servers === null || Array.isArray(servers)) return null;
    const all = Object.values(servers);
    return all.length && all.every((it) => typeof it === "object" && it !== null) ? (servers as Servers) : null;
  } catch {
    return null;
  }
}

/** Which of the two fields an error is about; null if neither. */
function faultyField(error: unknown): "name" | "place" | null {
  if (!(error instanceof ApiError)) return null;
  if (error.code === "MCP_NAME_RESERVED" || (error.code === "MCP_CONFIG_INVALID" && error.param === "settings.mcpServers"))
    return "name";
  return error.code === "MCP_COMMAND_NOT_ALLOWED" || error.code === "MCP_CONFIG_INVALID" ? "place" : null;
}

/** A server by its name and its address or command, or by pasting the usual JSON. */
export function ServerForm({ onAdd, onProblem, onCancel }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [name, setName] = useState("");
  const [place, setPlace] = useState("");
  const [pasted, setPasted] = useState("");
  const [fault, setFault] = useState<{ field: "name" | "place" | "pasted"; message: string } | null>(null);
  const faultOf = (field: "name" | "place" | "pasted") => (fault?.field === field ? fault.message : undefined);
  useUnsaved("tools", name + place + pasted !== "");
  const fromPaste = serversOf(pasted);
  const isAddress = /^https?:\/\//.test(place.trim());
  const typed = (): Servers => {
    const [command = "", ...args] = place.trim().split(/\s+/);
    return { [name.trim()]: isAddress ? { url: place.trim() } : { command, args } };
  };
  const ready = pasted ? fromPaste !== null : name.trim() !== "" && place.trim() !== "";
  const add = async () => {
    setFault(null);
    try {
      await onAdd(fromPaste ?? typed());
    } catch (error) {
      const field = faultyField(error);
      if (field === null) onProblem(error);
      else setFault({ field: pasted ? "pasted" : field, message: (error as ApiError).message });
    }
  };
  return (
    <form
      className="card editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) void add();
      }}
    >
      <div className="columns">
        <Field label={words.name} fault={faultOf("name")}>
          <input value={name} placeholder="time" onChange={(event) => setName(event.target.value)} />
        </Field>
        <Field label={agentWords.serverPlace} fault={faultOf("place")}>
          <input value={place} placeholder="uvx mcp-server-time" onChange={(event) => setPlace(event.target.value)} />
        </Field>
      </div>
      <Field
        label={agentWords.serverPaste}
        hint={pasted && !fromPaste ? agentWords.serverPasteWrong : undefined}
        fault={faultOf("pasted")}
      >
        <textarea
          rows={4}
          value={pasted}
          spellCheck={false}
          placeholder={'{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'}
          aria-invalid={pasted !== "" && !fromPaste}
          onChange={(event) => setPasted(event.target.value)}
        />
      </Field>
      <div className="choices">
        <button type="submit" className="primary" disabled={!ready}>
          {agentWords.add}
        </button>
        <button type="button" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}
