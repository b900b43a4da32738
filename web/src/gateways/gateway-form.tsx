import { ApiError, requestProblemOf, type GatewayTestView, type GatewayView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";

import { api } from "../api/api";
import { fieldOf } from "../hooks/use-form";
import { useUnsaved } from "../state/unsaved";
import { Field } from "../ui/field";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useGatewayWords } from "../words/gateways";
import { PROVIDERS, canTest, draftOf, gatewayBody, newDraft, patchOf, unsavedBody, withProvider, type GatewayDraft } from "./gateway";
import { ModelChoice } from "./model-choice";

type Fault = { field: "name" | "url" | "apiKey"; message: string };

interface Props {
  /** The gateway to change; null for a new one. */
  kept: GatewayView | null;
  all: readonly GatewayView[];
  onSaved: (gateway: GatewayView) => void;
  onCancel?: () => void;
}

/** One account with a provider: who, with which key, what it offers. It is tested before it is saved. */
export function GatewayForm({ kept, all, onSaved, onCancel }: Props) {
  const words = useWords();
  const gatewayWords = useGatewayWords();
  const [first] = useState<GatewayDraft>(() => (kept ? draftOf(kept) : newDraft(all)));
  const [draft, setDraft] = useState(first);
  /** The models that the provider lists; null until it was asked. */
  const [listed, setListed] = useState<readonly string[] | null>(kept ? kept.models.map((it) => it.name) : null);
  const [busy, setBusy] = useState<"testing" | "finishing" | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const [failure, setFailure] = useState("");
  const [result, setResult] = useState("");
  const group = useId();
  const outcome = useRef<HTMLParagraphElement>(null);
  useUnsaved("gateway", draft !== first);
  useEffect(() => {
    if (failure) outcome.current?.focus();
  }, [failure]);
  const faultOf = (field: Fault["field"]) => (fault?.field === field ? fault.message : undefined);
  const change = (changes: Partial<GatewayDraft>) => {
    setDraft((now) => ({ ...now, ...changes }));
    setFault(null);
    setFailure("");
  };
  /** Whether the stored key would go where it was entered for. */
  const usesKeptKey = kept !== null && kept.apiKey !== null && !draft.apiKey && draft.url.trim() === (kept.url ?? "");
  const isReady = canTest(draft, usesKeptKey) && draft.name.trim() !== "";
  const isComplete = isReady && listed !== null && draft.models.length > 0;

  const attempt = async (what: "testing" | "finishing", work: () => Promise<void>) => {
    setBusy(what);
    setFault(null);
    setFailure("");
    setResult("");
    try {
      await work();
    } catch (error) {
      const field = fieldOf(error, ["name", "url", "apiKey"]) as Fault["field"] | null;
      if (field) setFault({ field, message: (error as ApiError).message });
      else setFailure(describeProblem(words, requestProblemOf(error)));
    }
    setBusy(null);
  };
  const ask = (tested: GatewayDraft): Promise<GatewayTestView> =>
    usesKeptKey && !tested.models.length
      ? api.send("POST", `/api/admin/gateways/${kept.name}/test`)
      : api.send("POST", "/api/admin/gateways/test", unsavedBody(tested));
  const test = () =>
    attempt("testing", async () => {
      const found = await ask({ ...draft, models: [], defaultModel: "" });
      if (!found.ok) return setFailure(found.error ?? "");
      setListed(found.models);
      // Not every server lists its models: then their names are typed.
      setResult(found.models.length ? gatewayWords.found(found.models.length) : gatewayWords.notListed);
    });
  const finish = () =>
    attempt("finishing", async () => {
      if (!usesKeptKey) {
        const found = await ask(draft);
        if (!found.ok) return setFailure(found.error ?? "");
      }
      const saved = kept
        ? await api.send<GatewayView>("PATCH", `/api/admin/gateways/${kept.name}`, patchOf(draft, kept), {
            "If-Match": `"${kept.version}"`,
          })
        : await api.send<GatewayView>("POST", "/api/admin/gateways", gatewayBody(draft));
      onSaved(saved);
    });
  const isOwnAddress = draft.provider !== "compatible";
  const address = (
    <Field
      label={gatewayWords.address}
      hint={isOwnAddress ? gatewayWords.ownAddressHint : gatewayWords.addressHint}
      fault={faultOf("url")}
    >
      <input
        type="url"
        value={draft.url}
        spellCheck={false}
        placeholder={isOwnAddress ? "" : "http://127.0.0.1:11434/v1"}
        onChange={(event) => change({ url: event.target.value })}
      />
    </Field>
  );
  return (
    <form
      className="card editor gateway-form"
      aria-label={kept ? gatewayWords.editNamed(kept.name) : gatewayWords.connect}
      onSubmit={(event) => {
        event.preventDefault();
        if (busy) return;
        if (isComplete) void finish();
        else if (isReady) void test();
      }}
    >
      {!kept && (
        <fieldset className="providers">
          <legend>{gatewayWords.provider}</legend>
          {PROVIDERS.map((it) => (
            <label key={it} className="provider">
              <input
                type="radio"
                name={group}
                checked={draft.provider === it}
                onChange={() => {
                  setDraft(withProvider(draft, it, all));
                  setListed(null);
                  setResult("");
                }}
              />
              <strong>{gatewayWords.providers[it].name}</strong>
              <small>{gatewayWords.providers[it].about}</small>
            </label>
          ))}
        </fieldset>
      )}
      {!isOwnAddress && address}
      <Field
        label={gatewayWords.key}
        hint={kept?.apiKey ? gatewayWords.keptKeyHint : !isOwnAddress ? gatewayWords.optionalKeyHint : gatewayWords.keyHint}
        fault={faultOf("apiKey")}
      >
        <input type="password" value={draft.apiKey} autoComplete="off" spellCheck={false} onChange={(event) => change({ apiKey: event.target.value })} />
      </Field>
      {(!kept || isOwnAddress) && (
        <details open={fault?.field === "name" || (fault?.field === "url" && isOwnAddress) || undefined}>
          <summary>
            <ChevronRight aria-hidden className="fold" />
            <span>{isOwnAddress ? (kept ? gatewayWords.address : gatewayWords.more) : gatewayWords.name}</span>
          </summary>
          <div className="columns">
            {!kept && (
              <Field label={gatewayWords.name} hint={gatewayWords.nameHint} fault={faultOf("name")}>
                <input value={draft.name} maxLength={63} spellCheck={false} onChange={(event) => change({ name: event.target.value })} />
              </Field>
            )}
            {isOwnAddress && address}
          </div>
        </details>
      )}
      {listed && (
        <>
          <ModelChoice listed={listed} chosen={draft.models} onChange={(models) => change({ models })} />
          {draft.models.length > 1 && (
            <Field label={gatewayWords.default} hint={gatewayWords.defaultHint}>
              <select
                value={draft.models.includes(draft.defaultModel) ? draft.defaultModel : draft.models[0]}
                onChange={(event) => change({ defaultModel: event.target.value })}
              >
                {draft.models.map((it) => (
                  <option key={it}>{it}</option>
                ))}
              </select>
            </Field>
          )}
        </>
      )}
      <p className="hint" role="status">
        {busy === "testing" ? gatewayWords.testing : busy ? gatewayWords.finishing : result}
      </p>
      {failure && (
        <p className="wrong" role="alert" tabIndex={-1} ref={outcome}>
          {failure}
        </p>
      )}
      <div className="choices">
        {listed && (
          <button type="submit" className="primary" disabled={!isComplete || busy !== null}>
            {kept ? words.save : gatewayWords.finish}
          </button>
        )}
        <button type={listed ? "button" : "submit"} className={listed ? "" : "primary"} disabled={!isReady || busy !== null} onClick={listed ? () => void test() : undefined}>
          {gatewayWords.test}
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            {words.cancel}
          </button>
        )}
      </div>
    </form>
  );
}
