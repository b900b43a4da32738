import { type NewInvitationView } from "@threadkeep/client";

import { api } from "../api/api";
import { useForm } from "../state/use-form";
import { Field } from "../ui/field";
import { toastProblem } from "../ui/problem-bar";
import { WithCode } from "../ui/with-code";
import { useWords } from "../words";
import { useUserWords } from "../words/users";

interface Draft {
  user: string;
  role: "user" | "admin";
  /** For how many hours the link works. */
  ttlS: string;
}

const EMPTY: Draft = { user: "", role: "user", ttlS: "24" };
const HOURS = [1, 24, 72, 168, 720];
const DAY = 24;
const INVITED = "invited:";

interface Props {
  onMade: (invitation: NewInvitationView) => void;
  onCancel: () => void;
}

/** Whom to invite, as what, and for how long the link works. */
export function InvitationForm({ onMade, onCancel }: Props) {
  const words = useWords();
  const userWords = useUserWords();
  const { values, isSaving, faultOf, set, save } = useForm("invitation", EMPTY);
  const user = values.user.trim();
  const make = () =>
    save(async () => {
      const body = { user, admin: values.role === "admin", ttlS: Number(values.ttlS) * 3600 };
      onMade(await api.send<NewInvitationView>("POST", "/api/admin/invitations", body));
    }).catch((error: unknown) => toastProblem(words, error));
  return (
    <form
      className="card editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (user && !isSaving) void make();
      }}
    >
      <Field
        label={userWords.who}
        hint={<WithCode text={userWords.whoHint(INVITED + (user.startsWith(INVITED) ? user.slice(INVITED.length) : user || "ann"))} />}
        fault={faultOf("user")}
      >
        <input
          autoFocus
          value={values.user}
          maxLength={100}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          onChange={(event) => set("user", event.target.value)}
        />
      </Field>
      <div className="columns">
        <Field label={userWords.role} hint={values.role === "admin" ? userWords.roleHint : undefined}>
          <select value={values.role} onChange={(event) => set("role", event.target.value as Draft["role"])}>
            <option value="user">{words.userRoles.user}</option>
            <option value="admin">{words.userRoles.admin}</option>
          </select>
        </Field>
        <Field label={userWords.ttl} fault={faultOf("ttlS")}>
          <select value={values.ttlS} onChange={(event) => set("ttlS", event.target.value)}>
            {HOURS.map((it) => (
              <option key={it} value={it}>
                {it > DAY ? userWords.days(it / DAY) : userWords.hours(it)}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <div className="choices">
        <button type="submit" className="primary" disabled={!user || isSaving}>
          {userWords.make}
        </button>
        <button type="button" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}
