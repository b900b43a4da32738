import { useState } from "react";

import { type McpServerSettingsView } from "../api/schema";
import { useWords } from "../words";
import { Field } from "./field";

type Servers = Record<string, McpServerSettingsView>;

interface Props {
  onAdd: (servers: Servers) => Promise<boolean>;
  onCancel: () => void;
}

/** The servers of what people paste: with or without the outer `mcpServers`. Null when it is none of it. */
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

/** A server by its name and its address or command, or by pasting the usual JSON. */
export function ServerForm({ onAdd, onCancel }: Props) {
  const words = useWords();
  const [name, setName] = useState("");
  const [place, setPlace] = useState("");
  const [pasted, setPasted] = useState("");
  const fromPaste = serversOf(pasted);
  const isAddress = /^https?:\/\//.test(place.trim());
  const typed = (): Servers => {
    const [command = "", ...args] = place.trim().split(/\s+/);
    return { [name.trim()]: isAddress ? { url: place.trim() } : { command, args } };
  };
  const ready = pasted ? fromPaste !== null : name.trim() !== "" && place.trim() !== "";
  return (
    <form
      className="card editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) void onAdd(fromPaste ?? typed());
      }}
    >
      <div className="columns">
        <Field label={words.name}>
          <input value={name} placeholder="time" onChange={(event) => setName(event.target.value)} />
        </Field>
        <Field label={words.serverPlace}>
          <input value={place} placeholder="uvx mcp-server-time" onChange={(event) => setPlace(event.target.value)} />
        </Field>
      </div>
      <Field label={words.serverPaste} hint={pasted && !fromPaste ? words.serverPasteWrong : undefined}>
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
          {words.add}
        </button>
        <button type="button" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}
