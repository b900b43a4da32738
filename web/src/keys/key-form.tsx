import { type AgentView, type NewKeyView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useState } from "react";

import { api } from "../api/api";
import { agents } from "../state/agents";
import { useForm } from "../state/use-form";
import { Field } from "../ui/field";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useKeyWords } from "../words/keys";

export const SCOPES = ["read", "chat", "admin"] as const;
type Scope = (typeof SCOPES)[number];

interface Draft {
  name: string;
  scopes: Scope;
  /** How many days it is valid; empty for ever. */
  expiresAt: string;
  budgetMonth: string;
  agents: readonly string[];
  realm: string;
  mayDelete: boolean;
}

const EMPTY: Draft = { name: "", scopes: "chat", expiresAt: "90", budgetMonth: "", agents: [], realm: "", mayDelete: false };
const DAYS = ["7", "30", "90", "365", ""];
/** A key that may do everything doesn't live longer. */
const MOST_ADMIN_DAYS = 90;
const DAY_MS = 24 * 60 * 60 * 1000;

interface Props {
  /** Whether the key may act for the users of an application: only admins make such. */
  canAct: boolean;
  onMade: (key: NewKeyView) => void;
  onCancel: () => void;
}

/** What a new key is for and may do. */
export function KeyForm({ canAct, onMade, onCancel }: Props) {
  const words = useWords();
  const keyWords = useKeyWords();
  const known = useStore(agents);
  const { values, isSaving, faultOf, set, save } = useForm("keys", EMPTY);
  const [isLimited, setLimited] = useState(false);
  const [acts, setActs] = useState(false);
  const chosen = isLimited ? values.agents : [];
  const ready = values.name.trim() !== "" && (!isLimited || chosen.length > 0) && (!acts || values.realm.trim() !== "");
  const days = DAYS.filter((it) => values.scopes !== "admin" || (it !== "" && Number(it) <= MOST_ADMIN_DAYS));
  const make = () =>
    save(async () => {
      const expiresAt = values.expiresAt && new Date(Date.now() + Number(values.expiresAt) * DAY_MS).toISOString();
      const body = {
        name: values.name.trim(),
        scopes: [values.scopes],
        ...(isLimited && { agents: chosen }),
        ...(values.budgetMonth.trim() && { budgetMonth: values.budgetMonth.trim() }),
        ...(acts && { actAs: { realm: values.realm.trim() }, mayDelete: values.mayDelete && !isLimited }),
        // The server's own clock counts for the longest time.
        ...(expiresAt && !(values.scopes === "admin" && Number(values.expiresAt) === MOST_ADMIN_DAYS) && { expiresAt }),
      };
      onMade(await api.send<NewKeyView>("POST", "/api/keys", body));
    }).catch((error: unknown) => toastProblem(words, error));
  return (
    <form
      className="card editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (ready && !isSaving) void make();
      }}
    >
      <Field label={words.name} hint={keyWords.nameHint} fault={faultOf("name")}>
        <input autoFocus value={values.name} maxLength={100} onChange={(event) => set("name", event.target.value)} />
      </Field>
      <fieldset className="options">
        <legend>{keyWords.may}</legend>
        {SCOPES.map((scope) => (
          <label key={scope} className="check">
            <input
              type="radio"
              name="scope"
              checked={values.scopes === scope}
              onChange={() => {
                set("scopes", scope);
                if (scope === "admin") setActs(false);
                if (scope === "admin" && !(Number(values.expiresAt) <= MOST_ADMIN_DAYS && values.expiresAt))
                  set("expiresAt", String(MOST_ADMIN_DAYS));
              }}
            />
            <span>
              {keyWords.scopes[scope]} <small>{keyWords.scopeHints[scope]}</small>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset className="options">
        <legend>{words.agents}</legend>
        <label className="check">
          <input type="radio" name="agents" checked={!isLimited} onChange={() => setLimited(false)} />
          {keyWords.allAgents}
        </label>
        <label className="check">
          <input type="radio" name="agents" checked={isLimited} onChange={() => setLimited(true)} />
          {keyWords.someAgents}
        </label>
        {isLimited && <AgentChoice all={known ?? []} chosen={chosen} onChoose={(ids) => set("agents", ids)} />}
      </fieldset>
      {canAct && values.scopes !== "admin" && (
        <fieldset className="options">
          <legend>{keyWords.forWhom}</legend>
          <label className="check">
            <input type="radio" name="acting" checked={!acts} onChange={() => setActs(false)} />
            {keyWords.forYou}
          </label>
          <label className="check">
            <input type="radio" name="acting" checked={acts} onChange={() => setActs(true)} />
            <span>
              {keyWords.forUsers} <small>{keyWords.forUsersHint}</small>
            </span>
          </label>
          {acts && (
            <>
              <Field label={keyWords.realm} hint={keyWords.realmHint(values.realm.trim() || "shop")} fault={faultOf("realm")}>
                <input value={values.realm} maxLength={32} onChange={(event) => set("realm", event.target.value)} />
              </Field>
              {!isLimited && (
                <label className="check">
                  <input type="checkbox" checked={values.mayDelete} onChange={(event) => set("mayDelete", event.target.checked)} />
                  {keyWords.mayDeleteThem}
                </label>
              )}
            </>
          )}
        </fieldset>
      )}
      <div className="columns">
        <Field label={keyWords.expires} fault={faultOf("expiresAt")}>
          <select value={values.expiresAt} onChange={(event) => set("expiresAt", event.target.value)}>
            {days.map((it) => (
              <option key={it} value={it}>
                {it ? keyWords.inDays(Number(it)) : keyWords.never}
              </option>
            ))}
          </select>
        </Field>
        <Field label={keyWords.budget} hint={keyWords.budgetHint} fault={faultOf("budgetMonth")}>
          <input
            inputMode="decimal"
            value={values.budgetMonth}
            placeholder={keyWords.noLimit}
            onChange={(event) => set("budgetMonth", event.target.value)}
          />
        </Field>
      </div>
      <div className="choices">
        <button type="submit" className="primary" disabled={!ready || isSaving}>
          {keyWords.make}
        </button>
        <button type="button" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}

interface ChoiceProps {
  all: readonly AgentView[];
  chosen: readonly string[];
  onChoose: (ids: readonly string[]) => void;
}

function AgentChoice({ all, chosen, onChoose }: ChoiceProps) {
  return (
    <div className="agent-choice">
      {all.map(({ id, name }) => (
        <label key={id} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(id)}
            onChange={({ target }) => onChoose(target.checked ? [...chosen, id] : chosen.filter((it) => it !== id))}
          />
          <span dir="auto">{name}</span>
        </label>
      ))}
    </div>
  );
}
