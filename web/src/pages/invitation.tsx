import { ApiError, requestProblemOf, type InvitationOfferView, type Problem } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useCallback, useState } from "react";

import { readSignIn } from "../api/sign-in-ways";
import { useLoaded } from "../api/use-loaded";
import { draftKeys } from "../state/drafts";
import { acceptInvitation, leaveInvitation, readInvitation } from "../state/invitation";
import { session } from "../state/session";
import { describeProblem } from "../ui/problem-bar";
import { nameOf } from "../ui/user-name";
import { WithName } from "../ui/with-code";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { useInvitationWords } from "../words/invitation";
import { Alone } from "./alone";

/** An invitation's link was opened: it says whose account it is, and waits for a click. */
export function Invitation({ token }: { token: string }) {
  const words = useWords();
  const read = useCallback((signal: AbortSignal) => readInvitation(token, signal), [token]);
  const { loaded, again } = useLoaded(read);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isAccepting, setAccepting] = useState(false);
  const accept = async (switches: boolean) => {
    setAccepting(true);
    setProblem(null);
    try {
      await acceptInvitation(token, switches);
    } catch (error) {
      setAccepting(false);
      // Somebody else has signed in meanwhile, or the invitation has ended: what it offers now says so.
      if (error instanceof ApiError && [404, 409, 410].includes(error.status)) await again();
      else setProblem(requestProblemOf(error));
    }
  };
  if (loaded.state === "loading") return null;
  return (
    <Alone>
      {loaded.state === "ready" ? (
        <Offer offer={loaded.value} isAccepting={isAccepting} onAccept={(switches) => void accept(switches)} />
      ) : (
        <Useless problem={loaded.problem} onRetry={() => void again()} />
      )}
      {problem && (
        <p role="alert" className="wrong">
          {describeProblem(words, problem)}
        </p>
      )}
    </Alone>
  );
}

interface OfferProps {
  offer: InvitationOfferView;
  isAccepting: boolean;
  onAccept: (switches: boolean) => void;
}

function Offer({ offer, isAccepting, onAccept }: OfferProps) {
  const words = useWords();
  const invitationWords = useInvitationWords();
  const current = useStore(session);
  const me = current.state === "in" ? current.me : null;
  // A token in this tab signs in nobody whom the server knows of here.
  const hereId = offer.signedInAs ?? me?.id;
  if (hereId === offer.userId) return <Same name={offer.name} isAccepting={isAccepting} onAccept={() => onAccept(false)} />;
  const other = hereId && (me?.id === hereId ? nameOf(me) : nameOf({ id: hereId }));
  return (
    <>
      <h2>{offer.endsSessions ? invitationWords.title : invitationWords.ownTitle}</h2>
      <p>
        <WithName text={invitationWords.as(offer.name, offer.role === "admin")} />{" "}
        {offer.invitedBy && invitationWords.invitedBy(nameOf({ id: offer.invitedBy }))}
      </p>
      {other && (
        <p className="notice" role="status">
          <WithName text={invitationWords.otherHere(other)} /> {invitationWords.switchText(other, draftKeys().length)}
        </p>
      )}
      <div className="choices">
        <button type="button" className="primary" disabled={isAccepting} onClick={() => onAccept(other !== undefined)}>
          {other ? invitationWords.switch(other, offer.name) : invitationWords.accept(offer.name)}
        </button>
        {other && (
          <button type="button" onClick={leaveInvitation}>
            {invitationWords.stay(other)}
          </button>
        )}
      </div>
      <p className="hint">
        {invitationWords.until(dateTime(offer.expiresAt, words.locale))} {offer.endsSessions ? invitationWords.endsOthers : invitationWords.endsNone}
      </p>
    </>
  );
}

/** Who is signed in already needs no link, which would sign them out elsewhere. */
function Same({ name, isAccepting, onAccept }: { name: string; isAccepting: boolean; onAccept: () => void }) {
  const invitationWords = useInvitationWords();
  return (
    <>
      <p>
        <WithName text={invitationWords.sameHere(name)} />
      </p>
      <div className="choices">
        <button type="button" className="primary" onClick={leaveInvitation}>
          {invitationWords.open}
        </button>
        <button type="button" disabled={isAccepting} onClick={onAccept}>
          {invitationWords.acceptAgain}
        </button>
      </div>
    </>
  );
}

function Useless({ problem, onRetry }: { problem: Problem; onRetry: () => void }) {
  const words = useWords();
  const invitationWords = useInvitationWords();
  const isIn = useStore(session).state === "in";
  const { loaded } = useLoaded(readSignIn);
  // Where invitations are the only way in, there is nothing to choose: the text says whom to ask.
  const hasOtherWay = loaded.state === "ready" && loaded.value.ways.length > 0;
  const { code } = problem;
  const known = code in invitationWords.problems ? invitationWords.problems[code as keyof typeof invitationWords.problems] : null;
  return (
    <>
      <h2>{invitationWords.useless}</h2>
      <p role="alert">{known ?? describeProblem(words, problem)}</p>
      <div className="choices">
        {(known === null || code === "RATE_LIMITED") && (
          <button type="button" onClick={onRetry}>
            {words.retry}
          </button>
        )}
        {(isIn || hasOtherWay) && (
          <button type="button" className="primary" onClick={leaveInvitation}>
            {isIn ? invitationWords.open : invitationWords.toSignIn}
          </button>
        )}
      </div>
    </>
  );
}
