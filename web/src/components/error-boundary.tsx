import { Component, type ReactNode } from "react";

import { useWords } from "../words";

/** A page that can't be drawn says so, and offers to load again: nothing is lost. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? <Broken /> : this.props.children;
  }
}

function Broken() {
  const words = useWords();
  return (
    <main className="alone">
      <div role="alert">
        <h1>{words.pageBroken}</h1>
        <p>{words.pageBrokenHint}</p>
      </div>
      <button type="button" onClick={() => location.reload()}>
        {words.reload}
      </button>
    </main>
  );
}
