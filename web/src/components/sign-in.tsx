import { useState, type FormEvent } from "react";

import { findOut, signIn } from "../state/session";
import { useWords } from "../words";
import { Appearance } from "./appearance";
import { Mark } from "./mark";

/** Within an application that signs people in itself, a token would be of no use. */
const isEmbedded = document.documentElement.dataset["embedded"] === "True";

/** Without sign-in, the token in the server's data folder is the only one. */
const isLocal = document.documentElement.dataset["signsIn"] === "False";

export function SignIn({ refused }: { refused: boolean }) {
  return (
    <main className="alone">
      {isEmbedded ? <Elsewhere /> : <TokenForm refused={refused} />}
      <Appearance />
    </main>
  );
}

function Elsewhere() {
  const words = useWords();
  return (
    <div className="sign-in">
      <h1>
        <Mark /> Threadkeep
      </h1>
      <p>{words.signInElsewhere}</p>
      <button type="button" className="primary" onClick={() => void findOut()}>
        {words.retry}
      </button>
    </div>
  );
}

function TokenForm({ refused }: { refused: boolean }) {
  const words = useWords();
  const [given, setGiven] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (given.trim()) void signIn(given);
  };
  return (
    <form className="sign-in" onSubmit={submit}>
      <h1>
        <Mark /> Threadkeep
      </h1>
      <p>{isLocal ? words.signInLocal : words.signInHint}</p>
      <label>
        {words.token}
        <input
          type="password"
          value={given}
          onChange={(event) => setGiven(event.target.value)}
          autoComplete="off"
          spellCheck={false}
          aria-invalid={refused}
          autoFocus
        />
      </label>
      {refused && (
        <p role="alert" className="wrong">
          {words.tokenRefused}
        </p>
      )}
      <button type="submit" className="primary" disabled={!given.trim()}>
        {words.signIn}
      </button>
      {!isLocal && <p className="hint">{words.signInOperator}</p>}
    </form>
  );
}
