import { useState, type FormEvent } from "react";

import { signIn } from "../state/session";
import { useWords } from "../words";
import { Appearance } from "./appearance";
import { Mark } from "./mark";

export function SignIn({ refused }: { refused: boolean }) {
  const words = useWords();
  const [given, setGiven] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (given.trim()) void signIn(given);
  };
  return (
    <main className="alone">
      <form className="sign-in" onSubmit={submit}>
        <h1>
          <Mark /> Threadkeep
        </h1>
        <p>{words.signInHint}</p>
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
        <p className="hint">{words.signInOperator}</p>
      </form>
      <Appearance />
    </main>
  );
}
