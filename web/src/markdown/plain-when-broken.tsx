import { Component, type ReactNode } from "react";

interface Props {
  text: string;
  children: ReactNode;
}

/** Shows text that can't be rendered as it was written; the rest of the page keeps working. */
export class PlainWhenBroken extends Component<Props, { brokenBy: string | null }> {
  override state: { brokenBy: string | null } = { brokenBy: null };

  override componentDidCatch(): void {
    this.setState({ brokenBy: this.props.text });
  }

  override render(): ReactNode {
    // Another text may well be drawn.
    if (this.state.brokenBy === this.props.text) return <pre className="plain">{this.props.text}</pre>;
    return this.props.children;
  }
}
