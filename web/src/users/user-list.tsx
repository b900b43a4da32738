import { type KnownUserView, type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useRef } from "react";

import { api } from "../api/api";
import { useRowFocus } from "../hooks/use-row-focus";
import { confirmed } from "../state/confirmation";
import { minute } from "../state/minute";
import { signOut } from "../state/session";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { nameOf } from "../ui/user-name";
import { useWords } from "../words";
import { dateTime, relativeTime } from "../words/format";
import { useUserWords } from "../words/users";

interface Props {
  me: MeView;
  users: readonly KnownUserView[];
  onChanged: (user: KnownUserView) => void;
  onDeleted: (id: string) => void;
}

/** Where nobody signed in, everyone was this user: nobody can be kept out as them. */
const LOCAL = "local";

export function UserList({ me, users, onChanged, onDeleted }: Props) {
  const words = useWords();
  const userWords = useUserWords();
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  const change = async (user: KnownUserView) => {
    const [name, isSuspended] = [nameOf(user), user.suspendedAt !== undefined];
    const question = { title: userWords.suspendTitle(name), text: userWords.suspendText, action: userWords.suspend };
    if (!isSuspended && !(await confirmed(question))) return;
    try {
      const path = `/api/admin/users/${encodeURIComponent(user.id)}/${isSuspended ? "unsuspend" : "suspend"}`;
      onChanged(await api.send<KnownUserView>("POST", path));
      toast(isSuspended ? userWords.letInDone(name) : userWords.suspendedIt(name));
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const remove = async (user: KnownUserView) => {
    const [name, isSelf] = [nameOf(user), user.id === me.id];
    const asked = isSelf
      ? { title: userWords.removeSelfTitle, text: userWords.removeSelfText }
      : { title: userWords.removeTitle(name), text: userWords.removeText };
    const typed = { label: userWords.typeName(name), text: name };
    if (!(await confirmed({ ...asked, action: userWords.remove, typed }))) return;
    try {
      await api.send("DELETE", `/api/users/${encodeURIComponent(user.id)}`);
      if (isSelf) return signOut();
      onDeleted(user.id);
      toast(userWords.removed(name));
    } catch (error) {
      toastProblem(words, error);
    }
  };
  if (!users.length) return <p className="nothing">{userWords.nobody}</p>;
  return (
    <ul ref={rows} className="cards" aria-label={userWords.people}>
      {users.map((user) => {
        const [name, isSuspended] = [nameOf(user), user.suspendedAt !== undefined];
        return (
          <li key={user.id} className="card account-row" data-suspended={isSuspended || undefined}>
            <div>
              <h3 dir="auto" title={user.id}>
                {name} {user.id === me.id && <span className="badge">{userWords.you}</span>}{" "}
                {user.role === "admin" && <span className="badge">{userWords.admin}</span>}
              </h3>
              <UserFacts user={user} name={name} />
            </div>
            {user.id !== LOCAL && (
              <div className="choices">
                {user.id !== me.id && (
                  <button
                    type="button"
                    className={isSuspended ? undefined : "danger"}
                    aria-label={isSuspended ? userWords.letItIn(name) : userWords.suspendIt(name)}
                    onClick={() => void change(user)}
                  >
                    {isSuspended ? userWords.letIn : userWords.suspend}
                  </button>
                )}
                <button type="button" className="danger" aria-label={userWords.removeIt(name)} onClick={() => void remove(user)}>
                  {userWords.remove}
                </button>
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function UserFacts({ user, name }: { user: KnownUserView; name: string }) {
  const words = useWords();
  const userWords = useUserWords();
  const now = useStore(minute);
  const { id, lastSeenAt, suspendedAt, groups } = user;
  const seen = lastSeenAt && (relativeTime(lastSeenAt, words.locale, now) || null);
  // What a suspended user has been seen with may have ended since: then nothing says when they were here.
  const unseen = id === LOCAL ? userWords.local : !suspendedAt && userWords.unseen;
  const facts = [
    suspendedAt && userWords.suspended(dateTime(suspendedAt, words.locale)),
    id !== name && (user.invited ? userWords.invited : id),
    lastSeenAt === undefined ? unseen : seen ? userWords.seen(seen) : userWords.seenNow,
    groups?.length && userWords.groups(groups.join(", ")),
  ];
  return (
    <p className={suspendedAt ? "wrong" : undefined} dir="auto">
      {facts.filter(Boolean).join(" · ")}
    </p>
  );
}
