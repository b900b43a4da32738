import { requestProblemOf, type GatewayTestView, type GatewayView } from "@threadkeep/client";
import { useState } from "react";

import { api } from "../api/api";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useGatewayWords } from "../words/gateways";
import { isDemonstration } from "./gateway";

/** The gateway of the `THREADKEEP_GATEWAY…` settings, which name no prices. */
const OF_VARIABLES = "default";

interface Props {
  gateway: GatewayView;
  onEdit: () => void;
  onDelete: () => void;
}

/** A gateway, whether it works, and what can be done with it. */
export function GatewayCard({ gateway, onEdit, onDelete }: Props) {
  const words = useWords();
  const gatewayWords = useGatewayWords();
  const [tested, setTested] = useState<GatewayTestView | null>(null);
  const [testing, setTesting] = useState(false);
  const [failure, setFailure] = useState("");
  const { name, kind, url, models, defaultModel, source } = gateway;
  const shownName = isDemonstration(gateway) ? gatewayWords.demoName : name;
  const status = tested ? (tested.ok ? "connected" : "failing") : gateway.status;
  const error = failure || (tested ? tested.error : gateway.error);
  const test = async () => {
    setTesting(true);
    setFailure("");
    try {
      setTested(await api.send<GatewayTestView>("POST", `/api/admin/gateways/${encodeURIComponent(name)}/test`));
    } catch (reason) {
      setFailure(describeProblem(words, requestProblemOf(reason)));
    }
    setTesting(false);
  };
  const offered = models.length ? models.map((it) => it.name) : defaultModel ? [defaultModel] : [];
  return (
    <li className="card server gateway" data-status={status}>
      <div className="row">
        <strong>{shownName}</strong>
        <span className="badge">{gatewayWords.kinds[kind]}</span>
        <span className="badge">{gatewayWords.sources[source]}</span>
        <span className="status">{gatewayWords.status[status]}</span>
      </div>
      {url && <code>{url}</code>}
      {error && <p className="wrong">{error}</p>}
      {offered.length > 0 && (
        <ul className="tools">
          {offered.map((it, index) => (
            <li key={it}>
              {it}
              {offered.length > 1 && (defaultModel ? it === defaultModel : index === 0) && ` (${gatewayWords.isDefault})`}
            </li>
          ))}
        </ul>
      )}
      {!models.length && <p className="why">{kind === "local" ? gatewayWords.localModel : gatewayWords.anyModel}</p>}
      {source === "settings" && kind !== "local" && <p className="why">{name === OF_VARIABLES ? gatewayWords.noPricesHere : gatewayWords.pricesInSettings(name)}</p>}
      <div className="choices">
        <button type="button" disabled={testing} onClick={() => void test()} aria-label={gatewayWords.testNamed(shownName)}>
          {gatewayWords.test}
        </button>
        {source === "admin" && (
          <>
            <button type="button" onClick={onEdit} aria-label={gatewayWords.editNamed(name)}>
              {gatewayWords.edit}
            </button>
            <button type="button" className="danger" onClick={onDelete} aria-label={gatewayWords.deleteNamed(name)}>
              {gatewayWords.delete}
            </button>
          </>
        )}
        <span className="hint" role="status">
          {testing ? gatewayWords.testing : tested && !failure ? (tested.ok ? gatewayWords.works : gatewayWords.fails) : ""}
        </span>
      </div>
    </li>
  );
}
