import { type PartOf } from "@threadkeep/client";
import { ChevronRight, Info, Unplug } from "lucide-react";

import { absentProgram, unreachableServers, type UnreachableServer } from "../../turn/notices";
import { useWords } from "../../words";

/** What degraded during the turn: a line each, and one for all unavailable servers. */
export function NoticeLines({ notices }: { notices: readonly PartOf<"notice">[] }) {
  const words = useWords();
  const waited = notices.map(absentProgram).filter((it) => it !== undefined);
  const { unreachable, others } = unreachableServers(notices.filter((it) => absentProgram(it) === undefined));
  return (
    <>
      {unreachable.length > 0 && <UnreachableLine servers={unreachable} />}
      {[...new Set(waited)].map((key) => (
        <p key={key} className="notice-line" role="note">
          <Unplug aria-hidden />
          <span>{words.waitsForProgram(key)}</span>
        </p>
      ))}
      {others.map((message) => (
        <p key={message} className="notice-line" role="note">
          <Info aria-hidden />
          <span>{message}</span>
        </p>
      ))}
    </>
  );
}

function UnreachableLine({ servers }: { servers: readonly UnreachableServer[] }) {
  const words = useWords();
  const text = words.mcpServersUnreachable(servers.map((it) => it.name));
  const reasons = servers.filter((it) => it.reason);
  if (!reasons.length)
    return (
      <p className="notice-line" role="note">
        <Unplug aria-hidden />
        <span>{text}</span>
      </p>
    );
  return (
    <details className="notice-line" role="group" aria-label={text}>
      <summary>
        <Unplug aria-hidden />
        <span>{text}</span>
        <ChevronRight aria-hidden className="fold" />
      </summary>
      {reasons.map(({ name, reason }) => (
        <p key={name} className="detail">
          {servers.length > 1 ? `${name}: ${reason}` : reason}
        </p>
      ))}
    </details>
  );
}
