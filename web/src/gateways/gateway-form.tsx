import { ApiError, requestProblemOf, type GatewayTestView, type GatewayView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";

import { api } from "../api/api";
import { useUnsaved } from "../state/unsaved";
import { fieldOf } from "../state/use-form";
import { Field } from "../ui/field";
import { Picker } from "../ui/picker";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useGatewayWords } from "../words/gateways";
import {
  NO_MODELS,
  PROVIDERS,
  defaultOf,
  draftOf,
  gatewayBody,
  missingIn,
  newDraft,
  offeredModels,
  onlyModel,
  patchOf,
  priceFaultOf,
  unsavedBody,
  withProvider,
  withUrl,
  type GatewayDraft,
  type PriceFault,
} from "./gateway";
import { ModelChoice } from "./model-choice";
import { ModelPrices } from "./model-prices";

type Fault = { field: "name" | "url" | "apiKey" | "models"; message: string };

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
  /** The models that the provider lists, and those that were added; null until it was asked. */
  const [listed, setListed] = useState<readonly string[] | null>(kept ? kept.models.map((it) => it.name) : null);
  const [busy, setBusy] = useState<"testing" | "finishing" | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const [priceFault, setPriceFault] = useState<PriceFault | null>(null);
  const [failure, setFailure] = useState("");
  const [result, setResult] = useState("");
  const group = useId();
  const outcome = useRef<HTMLParagraphElement>(null);
  useUnsaved("gateway", draft !== first);
  useEffect(() => {
    if (failure) outcome.current?.focus();
  }, [failure]);
  const faultOf = (field: Fault["field"]) => (fault?.field === field ? fault.message : undefined);
  const chooseModels = (changes: Partial<GatewayDraft>) => {
    setDraft((now) => ({ ...now, ...changes }));
    setFault((now) => (now?.field === "models" ? null : now));
  };
  /** Another account may succeed where this one failed; other models of it may not. */
  const changeAccount = (changes: Partial<GatewayDraft>) => {
    setDraft((now) => ({ ...now, ...changes }));
    setFault(null);
    setPriceFault(null);
    setFailure("");
  };
  /** Whether the stored key would go where it was entered for. */
  const usesKeptKey = kept !== null && kept.apiKey !== null && !draft.apiKey && draft.url.trim() === (kept.url ?? "");
  const offered = offeredModels(draft);
  const byDefault = defaultOf(draft) ?? "";
  /** Says at its field what is still to be filled in; whether nothing is. */
  const isFilledIn = (needsModels: boolean): boolean => {
    const field = missingIn(draft, usesKeptKey) ?? (needsModels && !offered.length ? "models" : null);
    if (field) setFault({ field, message: gatewayWords.missing[field] });
    return field === null;
  };

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
    usesKeptKey && !offeredModels(tested).length
      ? api.send("POST", `/api/admin/gateways/${kept.name}/test`)
      : api.send("POST", "/api/admin/gateways/test", unsavedBody(tested));
  const test = async () => {
    if (!isFilledIn(false)) return;
    let isFine = false;
    await attempt("testing", async () => {
      const found = await ask({ ...draft, ...NO_MODELS });
      if (!found.ok) return setFailure(found.error ?? "");
      isFine = true;
      setListed(found.models);
      const only = onlyModel(found.models);
      if (only && !offered.length) chooseModels({ models: [only] });
      // Not every server lists its models: then their names are typed.
      setResult(found.models.length ? gatewayWords.found(found.models.length) : gatewayWords.notListed);
    });
    if (isFine || kept) return;
    setListed(null); // it was of another account
    chooseModels(NO_MODELS);
  };
  const finish = async () => {
    if (!isFilledIn(true)) return;
    const wrongPrice = priceFaultOf(draft);
    setPriceFault(wrongPrice);
    if (wrongPrice) return;
    await attempt("finishing", async () => {
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
  };
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
        onChange={(event) => changeAccount(kept ? { url: event.target.value } : withUrl(draft, event.target.value, all))}
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
        void (listed ? finish() : test());
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
        <input type="password" value={draft.apiKey} autoComplete="off" spellCheck={false} onChange={(event) => changeAccount({ apiKey: event.target.value })} />
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
                <input value={draft.name} maxLength={63} spellCheck={false} onChange={(event) => changeAccount({ name: event.target.value })} />
              </Field>
            )}
            {isOwnAddress && address}
          </div>
        </details>
      )}
      {listed && (
        <>
          <ModelChoice
            listed={listed}
            chosen={draft.models}
            another={draft.anotherModel}
            fault={faultOf("models")}
            onChange={(models) => chooseModels({ models })}
            onAnother={(anotherModel) => chooseModels({ anotherModel })}
            onAdd={() => {
              setListed([...new Set([...listed, draft.anotherModel.trim()])]);
              chooseModels({ models: offered, anotherModel: "" });
            }}
          />
          {draft.models.length > 1 && (
            <Field label={gatewayWords.default} hint={gatewayWords.defaultHint}>
              <Picker
                name={gatewayWords.default}
                shown={byDefault}
                groups={[{ items: draft.models.map((it) => ({ label: it, checked: it === byDefault, run: () => chooseModels({ defaultModel: it }) })) }]}
              />
            </Field>
          )}
          {draft.models.length > 0 && (
            <ModelPrices
              models={draft.models}
              prices={draft.prices}
              fault={priceFault}
              isOpen={kept !== null || priceFault !== null}
              onChange={(prices) => {
                chooseModels({ prices });
                setPriceFault(null);
              }}
            />
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
          <button type="submit" className="primary" disabled={busy !== null}>
            {kept ? words.save : gatewayWords.finish}
          </button>
        )}
        <button type={listed ? "button" : "submit"} className={listed ? "" : "primary"} disabled={busy !== null} onClick={listed ? () => void test() : undefined}>
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
