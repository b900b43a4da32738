import { useState, type FormEvent } from "react";

import { isLocal } from "../api/api";
import { loadSession, signIn } from "../state/session";
import { Logo } from "../ui/logo";
import { useWords } from "../words";
import { useSignInWords } from "../words/sign-in";
import { Appearance } from "./appearance";

/** Within an application that signs people in itself, a token would be of no use. */
const isEmbedded = document.documentElement.dataset["embedded"] === "True";

const USUAL_PORT = "8710";

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
  const signInWords = useSignInWords();
  return (
    <div className="sign-in">
      <h1>
        <Logo /> Threadkeep
      </h1>
      <p>{signInWords.signInElsewhere}</p>
      <button type="button" className="primary" onClick={() => void loadSession()}>
        {words.retry}
      </button>
    </div>
  );
}

function TokenForm({ refused }: { refused: boolean }) {
  const signInWords = useSignInWords();
  const [given, setGiven] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (given.trim()) void signIn(given);
  };
  return (
    <form className="sign-in" onSubmit={submit}>
      <h1>
        <Logo /> Threadkeep
      </h1>
      <p>{isLocal ? withCode(signInWords.signInLocal(openCommand())) : signInWords.signInHint}</p>
      <label>
        {signInWords.token}
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
          {signInWords.tokenRefused}
        </p>
      )}
      <button type="submit" className="primary" disabled={!given.trim()}>
        {signInWords.signIn}
      </button>
      {!isLocal && <p className="hint">{withCode(signInWords.signInOperator)}</p>}
    </form>
  );
}

/** The command that opens this page with the token. */
function openCommand(): string {
  const { port } = location;
  return port && port !== USUAL_PORT ? `threadkeep open --port ${port}` : "threadkeep open";
}

/** A sentence with commands, each between two backticks. */
function withCode(sentence: string) {
  return sentence.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part));
}
