import { type NewKeyView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useId, useState } from "react";

import { api } from "../api/api";
import { agents } from "../state/agents";
import { CopyButton } from "../ui/copy-button";
import { useKeyWords } from "../words/keys";
import { snippetsFor, type Block, type SnippetGroup } from "./snippets";

/** What to write to use a key, for the client that the user picks. */
export function Connect({ made }: { made: Pick<NewKeyView, "key" | "scopes" | "agents"> }) {
  const keyWords = useKeyWords();
  const all = useStore(agents);
  const [picked, setPicked] = useState("curl");
  const groups = snippetsFor({
    url: api.url("").href.replace(/\/$/, ""),
    key: made.key,
    canChat: made.scopes.some((it) => it !== "read"),
    agentId: made.agents?.[0] ?? null,
    defaultAgent: all.find((it) => it.isDefault)?.name ?? "Assistant",
  });
  const shown = groups.flatMap(({ snippets }) => snippets).find(({ name }) => name === picked);
  return (
    <div className="connect">
      <div className="clients" role="radiogroup" aria-label={keyWords.connect}>
        {groups.map((group) => (
          <Clients key={group.kind} group={group} picked={picked} onPick={setPicked} />
        ))}
      </div>
      {shown?.blocks.map((block) => <Code key={block.file ?? block.language} name={shown.name} block={block} />)}
    </div>
  );
}

interface ClientsProps {
  group: SnippetGroup;
  picked: string;
  onPick: (name: string) => void;
}

function Clients({ group, picked, onPick }: ClientsProps) {
  const keyWords = useKeyWords();
  const id = useId();
  return (
    <div role="group" aria-labelledby={id}>
      <span id={id}>{keyWords.clients[group.kind]}</span>
      {group.snippets.map(({ name }) => (
        <label key={name}>
          <input type="radio" name="client" checked={name === picked} onChange={() => onPick(name)} />
          {name}
        </label>
      ))}
    </div>
  );
}

function Code({ name, block: { file, language, code } }: { name: string; block: Block }) {
  const keyWords = useKeyWords();
  const place = file ?? (language === "sh" ? keyWords.terminal : name);
  return (
    <figure aria-label={place}>
      <figcaption>
        {place}
        <CopyButton text={code} label={language === "sh" ? keyWords.copyCommands : keyWords.copyCode(place)} />
      </figcaption>
      <pre tabIndex={0} aria-label={place} data-language={language}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}
