import { type InvitationView } from "@threadkeep/client";
import { useRef } from "react";

import { api } from "../api/api";
import { useRowFocus } from "../hooks/use-row-focus";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { nameOf } from "../ui/user-name";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { useUserWords } from "../words/users";

/** Who was invited and has not come yet. */
export function InvitationList({ invitations, onChanged }: { invitations: readonly InvitationView[]; onChanged: () => void }) {
  const words = useWords();
  const userWords = useUserWords();
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  const withdraw = async (id: string, name: string) => {
    try {
      await api.send("DELETE", `/api/admin/invitations/${id}`);
      toast(userWords.withdrawn(name));
    } catch (error) {
      toastProblem(words, error);
    }
    onChanged();
  };
  return (
    <ul ref={rows} className="cards" aria-label={userWords.open}>
      {invitations.map(({ id, userId, role, expiresAt, invitedBy }) => {
        const name = nameOf({ id: userId });
        const facts = [userWords.openFacts(dateTime(expiresAt, words.locale)), invitedBy && userWords.by(nameOf({ id: invitedBy }))];
        return (
          <li key={id} className="card account-row">
            <div>
              <h3 dir="auto">
                {name} {role === "admin" && <span className="badge">{userWords.admin}</span>}
              </h3>
              <p>{facts.filter(Boolean).join(" · ")}</p>
            </div>
            <button type="button" aria-label={userWords.withdrawIt(name)} onClick={() => void withdraw(id, name)}>
              {userWords.withdraw}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
