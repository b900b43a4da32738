import { ChevronRight, Info, Unplug } from "lucide-react";

import { type PartOf } from "../turn/parts";
import { awayServers, type AwayServer } from "../turn/notices";
import { useWords } from "../words";

/** What degraded during the turn: a line each, and one for all unavailable servers. */
export function NoticeLines({ notices }: { notices: readonly PartOf<"notice">[] }) {
  const { away, others } = awayServers(notices);
  return (
    <>
      {away.length > 0 && <AwayLine servers={away} />}
      {others.map((message) => (
        <p key={message} className="notice-line" role="note">
          <Info aria-hidden />
          <span>{message}</span>
        </p>
      ))}
    </>
  );
}

function AwayLine({ servers }: { servers: readonly AwayServer[] }) {
  const words = useWords();
  const told = words.serversAway(servers.map((it) => it.name));
  const reasons = servers.filter((it) => it.reason);
  if (!reasons.length)
    return (
      <p className="notice-line" role="note">
        <Unplug aria-hidden />
        <span>{told}</span>
      </p>
    );
  return (
    <details className="notice-line" role="group" aria-label={told}>
      <summary>
        <Unplug aria-hidden />
        <span>{told}</span>
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
