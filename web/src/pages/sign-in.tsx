import { type SignInView } from "@threadkeep/client";
import { useState, type FormEvent, type ReactNode } from "react";

import { isEmbedded, isLocal } from "../api/api";
import { readSignIn } from "../api/sign-in-ways";
import { useLoaded } from "../api/use-loaded";
import { openCommand } from "../state/own-token";
import { loadSession, signIn, type Refused } from "../state/session";
import { describeProblem } from "../ui/problem-bar";
import { WithCode } from "../ui/with-code";
import { useWords } from "../words";
import { useSignInWords } from "../words/sign-in";
import { Alone } from "./alone";
import { signInHref, signInProblem } from "./sign-in-address";

export function SignIn({ refused }: { refused: Refused }) {
  const signInWords = useSignInWords();
  return (
    <Alone>
      {refused && refused !== "token" && <p role="alert">{signInWords.ended[refused]}</p>}
      {/* Within an application that signs people in itself, a token would be of no use. */}
      {isEmbedded() ? <Elsewhere /> : isLocal ? <LocalToken refused={refused} /> : <Ways refused={refused} />}
    </Alone>
  );
}

function Elsewhere() {
  const words = useWords();
  const signInWords = useSignInWords();
  return (
    <>
      <p>{signInWords.signInElsewhere}</p>
      <button type="button" className="primary" onClick={() => void loadSession()}>
        {words.retry}
      </button>
    </>
  );
}

function LocalToken({ refused }: { refused: Refused }) {
  const signInWords = useSignInWords();
  return (
    <TokenForm refused={refused}>
      <p>
        <WithCode text={signInWords.signInLocal(openCommand())} />
      </p>
    </TokenForm>
  );
}

/** What the operator has set up, the easiest first. */
function Ways({ refused }: { refused: Refused }) {
  const words = useWords();
  const signInWords = useSignInWords();
  const { loaded, again } = useLoaded(readSignIn);
  if (loaded.state === "loading") return <p className="hint">{words.loading}</p>;
  if (loaded.state === "failed")
    return (
      <>
        <p role="alert" className="wrong">
          {describeProblem(words, loaded.problem)}
        </p>
        <button type="button" onClick={() => void again()}>
          {words.retry}
        </button>
      </>
    );
  const { ways, invitations, tokens } = loaded.value;
  const isForPeople = ways.length > 0 || invitations;
  const token = tokens && (
    <TokenForm refused={refused} isFirst={!isForPeople}>
      <p className={isForPeople ? "hint" : undefined}>{signInWords.signInHint}</p>
    </TokenForm>
  );
  return (
    <>
      <Problem ways={ways} />
      {ways.length > 0 && (
        <div className="ways">
          {ways.map(({ name, title, url }) => (
            <a key={name} className="button primary" href={signInHref(url)}>
              {signInWords.continueWith(title)}
            </a>
          ))}
        </div>
      )}
      {invitations && refused !== "suspendedByAdmin" && <p className={ways.length ? "hint" : undefined}>{ways.length ? signInWords.withInvitation : signInWords.byInvitation}</p>}
      {isForPeople && token ? (
        <details open={refused === "token"}>
          <summary>{signInWords.developer}</summary>
          {token}
        </details>
      ) : (
        token
      )}
      {!isForPeople && (
        <p className="hint">
          <WithCode text={signInWords.signInOperator} />
        </p>
      )}
    </>
  );
}

/** Why signing in with a provider came to nothing, if it just has. */
function Problem({ ways }: { ways: SignInView["ways"] }) {
  const signInWords = useSignInWords();
  const [problem] = useState(signInProblem);
  if (problem === null) return null;
  const problems = signInWords.problems;
  const describe = Object.hasOwn(problems, problem.code) ? problems[problem.code as keyof typeof problems] : problems.other;
  return (
    <p role="alert" className="wrong">
      {describe(ways.find(({ name }) => name === problem.provider)?.title ?? signInWords.aProvider)}
    </p>
  );
}

interface TokenFormProps {
  refused: Refused;
  isFirst?: boolean;
  children: ReactNode;
}

function TokenForm({ refused, isFirst = true, children }: TokenFormProps) {
  const signInWords = useSignInWords();
  const [given, setGiven] = useState("");
  const isRefused = refused === "token";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (given.trim()) void signIn(given);
  };
  return (
    <form onSubmit={submit}>
      {children}
      <label>
        {signInWords.token}
        <input
          type="password"
          value={given}
          onChange={(event) => setGiven(event.target.value)}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={isRefused}
          autoFocus={isFirst}
        />
      </label>
      {isRefused && (
        <p role="alert" className="wrong">
          {signInWords.tokenRefused}
        </p>
      )}
      <button type="submit" className={isFirst ? "primary" : undefined} disabled={!given.trim()}>
        {signInWords.signIn}
      </button>
    </form>
  );
}
