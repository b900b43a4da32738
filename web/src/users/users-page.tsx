import "../styles/account-rows.css";
import "../styles/keys.css";

import {
  type InvitationView,
  type KnownUserView,
  type MeView,
  type NewInvitationView,
  type PageView_InvitationView,
  type PageView_KnownUserView,
  type SignInView,
} from "@threadkeep/client";
import { useCallback, useState } from "react";

import { api } from "../api/api";
import { readSignIn } from "../api/sign-in-ways";
import { useLoaded } from "../api/use-loaded";
import { TopBar } from "../chat/top-bar";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { WithCode } from "../ui/with-code";
import { useWords } from "../words";
import { useUserWords } from "../words/users";
import { InvitationForm } from "./invitation-form";
import { InvitationList } from "./invitation-list";
import { LocalDataOffer } from "./local-data-offer";
import { NewInvitation } from "./new-invitation";
import { UserList } from "./user-list";

const USERS = "/api/admin/users";
const AT_ONCE = 100;

interface People {
  users: readonly KnownUserView[];
  nextCursor: string | null;
  invitations: readonly InvitationView[];
  signIn: SignInView;
}

/** Who uses this server: to invite, and to keep out; for operators. */
export function UsersPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const userWords = useUserWords();
  return (
    <div className="page">
      <TopBar title={userWords.title} onMenu={onMenu} />
      <div className="content keys users">{me.role === "admin" ? <Users me={me} /> : <p className="hint">{userWords.notAdmin}</p>}</div>
    </div>
  );
}

async function readPeople(signal: AbortSignal): Promise<People> {
  const [users, invitations, signIn] = await Promise.all([
    api.get<PageView_KnownUserView>(USERS, { limit: AT_ONCE }, signal),
    api.get<PageView_InvitationView>("/api/admin/invitations", {}, signal),
    readSignIn(signal),
  ]);
  return { users: users.items, nextCursor: users.nextCursor, invitations: invitations.items, signIn };
}

function Users({ me }: { me: MeView }) {
  const words = useWords();
  const userWords = useUserWords();
  const { loaded, again, set } = useLoaded(readPeople);
  const [isInviting, setInviting] = useState(false);
  const [made, setMade] = useState<NewInvitationView | null>(null);
  const refresh = useCallback(() => void again(), [again]);
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed")
    return (
      <p className="hint wrong" role="alert">
        {describeProblem(words, loaded.problem)}{" "}
        <button type="button" className="link" onClick={refresh}>
          {words.retry}
        </button>
      </p>
    );
  const people = loaded.value;
  const { users, invitations, nextCursor, signIn } = people;
  const readMore = async () => {
    try {
      const more = await api.get<PageView_KnownUserView>(USERS, { limit: AT_ONCE, cursor: nextCursor });
      set({ ...people, users: [...users, ...more.items], nextCursor: more.nextCursor });
    } catch (error) {
      toastProblem(words, error);
      set({ ...people, nextCursor: null }); // it doesn’t ask again by itself
    }
  };
  return (
    <>
      <p className="hint">{userWords.intro}</p>
      {me.reassignable && <LocalDataOffer left={me.reassignable} />}
      {!signIn.invitations ? (
        <p className="hint">
          <WithCode text={userWords.noInvitations} />
        </p>
      ) : made ? (
        <NewInvitation made={made} onDone={() => setMade(null)} />
      ) : isInviting ? (
        <InvitationForm
          onCancel={() => setInviting(false)}
          onMade={(invitation) => {
            setMade(invitation);
            setInviting(false);
            refresh();
          }}
        />
      ) : (
        <button type="button" className="primary" onClick={() => setInviting(true)}>
          {userWords.invite}
        </button>
      )}
      {invitations.length > 0 && (
        <section aria-labelledby="users-invited">
          <h2 id="users-invited">{userWords.open}</h2>
          <InvitationList invitations={invitations} onChanged={refresh} />
        </section>
      )}
      <section aria-labelledby="users-known">
        <h2 id="users-known">{userWords.people}</h2>
        <UserList
          me={me}
          users={users}
          onChanged={(user) => set({ ...people, users: users.map((it) => (it.id === user.id ? user : it)) })}
          onDeleted={(id) => set({ ...people, users: users.filter((it) => it.id !== id) })}
        />
        {nextCursor !== null && <ScrollSentinel onSeen={readMore} />}
      </section>
      <HowToBeAdmin signIn={signIn} />
    </>
  );
}

/** How somebody becomes an administrator, by each way in which people sign in here. */
function HowToBeAdmin({ signIn: { ways, invitations, tokens } }: { signIn: SignInView }) {
  const userWords = useUserWords();
  const how = [
    ...ways.map(({ name, title }) => userWords.adminByGroup(title, name)),
    ...(invitations ? [userWords.adminByInvitation] : []),
    ...(tokens ? [userWords.adminByClaim] : []),
  ];
  return (
    <section aria-labelledby="users-admins">
      <h2 id="users-admins">{userWords.admins}</h2>
      <p className="hint">{userWords.adminsIntro}</p>
      <ul className="hint">
        {how.map((it) => (
          <li key={it}>
            <WithCode text={it} />
          </li>
        ))}
      </ul>
    </section>
  );
}
