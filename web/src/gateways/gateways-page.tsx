import { requestProblemOf, type GatewayView, type GatewaysView, type MeView, type Problem } from "@threadkeep/client";
import { useEffect, useState } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { TopBar } from "../chat/top-bar";
import { confirmed } from "../state/confirmation";
import { refreshModels } from "../state/models";
import { go } from "../state/route";
import { ProblemBar, describeProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useGatewayWords } from "../words/gateways";
import { isDemonstration } from "./gateway";
import { GatewayCard } from "./gateway-card";
import { GatewayForm } from "./gateway-form";

const readGateways = async (signal: AbortSignal) => (await api.get<GatewaysView>("/api/admin/gateways", {}, signal)).items;

/** After this long, the server knows how a gateway is. */
const LOOK_MS = 2000;

/** The operator's page of gateways; without a real one, it begins with the form that connects one. */
export function GatewaysPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const gatewayWords = useGatewayWords();
  return (
    <div className="page">
      <TopBar title={gatewayWords.title} onMenu={onMenu} />
      <div className="content gateways">
        {me.role === "admin" ? <Gateways /> : <p className="hint">{gatewayWords.notAdmin}</p>}
      </div>
    </div>
  );
}

function Gateways() {
  const words = useWords();
  const gatewayWords = useGatewayWords();
  const { loaded, again } = useLoaded(readGateways);
  /** The gateway whose form is open; "new" for one that is to be connected. */
  const [open, setOpen] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  // The server asks the providers how they are as soon as somebody wants to know.
  const isUnknown = loaded.state === "ready" && loaded.value.some((it) => it.status === "unknown");
  useEffect(() => {
    const timer = isUnknown ? setTimeout(() => void again(), LOOK_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isUnknown, loaded, again]);
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed")
    return (
      <p className="hint" role="alert">
        {describeProblem(words, loaded.problem)}{" "}
        <button type="button" className="link" onClick={() => void again()}>
          {words.retry}
        </button>
      </p>
    );
  const all = loaded.value;
  const isFirst = all.every(isDemonstration);
  const refresh = async () => {
    await Promise.all([again(), refreshModels()]);
  };
  const saved = async (gateway: GatewayView) => {
    const start = { label: words.newConversation, run: () => go({ name: "new", agentId: null }) };
    if (open === "new" || isFirst) toast(gatewayWords.connected(gateway.name), start);
    else toast(gatewayWords.saved);
    setOpen(null);
    await refresh();
    document.getElementById("gateways")?.focus(); // the form with the focus is gone
  };
  const remove = async ({ name }: GatewayView) => {
    const question = { title: gatewayWords.deleteNamed(name), text: gatewayWords.deleteSure, action: gatewayWords.delete };
    if (!(await confirmed(question))) return;
    try {
      await api.send("DELETE", `/api/admin/gateways/${encodeURIComponent(name)}`);
      setProblem(null);
      toast(gatewayWords.deleted(name));
      await refresh();
      document.getElementById("gateways")?.focus();
    } catch (error) {
      setProblem(requestProblemOf(error));
    }
  };
  return (
    <div className="form">
      <p className="hint" id="gateways" tabIndex={-1}>
        {isFirst ? (all.length ? gatewayWords.demonstration : gatewayWords.nothing) : gatewayWords.intro}
      </p>
      {isFirst && <GatewayForm kept={null} all={all} onSaved={(it) => void saved(it)} />}
      {!isFirst && (
        <ul className="cards">
          {all.map((it) =>
            open === it.name ? (
              <li key={it.name}>
                <GatewayForm kept={it} all={all} onSaved={(next) => void saved(next)} onCancel={() => setOpen(null)} />
              </li>
            ) : (
              <GatewayCard key={it.name} gateway={it} onEdit={() => setOpen(it.name)} onDelete={() => void remove(it)} />
            ),
          )}
        </ul>
      )}
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {!isFirst &&
        (open === "new" ? (
          <GatewayForm kept={null} all={all} onSaved={(it) => void saved(it)} onCancel={() => setOpen(null)} />
        ) : (
          <div className="choices">
            <button type="button" onClick={() => setOpen("new")}>
              {gatewayWords.connectAnother}
            </button>
          </div>
        ))}
    </div>
  );
}
