import { Component, type ReactNode } from "react";

import { useWords } from "../words";

/** If a page can't be rendered, says so and offers to reload: nothing is lost. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? <Broken /> : this.props.children;
  }
}

/** Offers to reload the page, with a reason if there is one. */
export function Broken({ reason }: { reason?: string }) {
  const words = useWords();
  return (
    <main className="alone">
      <div role="alert">
        <h1>{reason ?? words.pageBroken}</h1>
        <p>{words.pageBrokenHint}</p>
      </div>
      <button type="button" onClick={() => location.reload()}>
        {words.reload}
      </button>
    </main>
  );
}
