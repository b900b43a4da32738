import "../styles/button-link.css";
import "../styles/sign-in.css";

import { type ReactNode } from "react";

import { Logo } from "../ui/logo";
import { Appearance } from "./appearance";

/** A card that is all of the page. */
export function Alone({ children }: { children: ReactNode }) {
  return (
    <main className="alone">
      <div className="sign-in">
        <h1>
          <Logo /> Threadkeep
        </h1>
        {children}
      </div>
      <Appearance />
    </main>
  );
}
