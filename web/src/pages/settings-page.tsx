import { type HealthView, type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { api, isLocal } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { NotificationSetting } from "../away/notification-setting";
import { TopBar } from "../chat/top-bar";
import { overlay } from "../state/overlay";
import { setLanguage, setTheme, themeChoice, type ThemeChoice } from "../state/preferences";
import { hrefOf } from "../state/route";
import { useCanSignOut, useSignOut } from "../state/use-sign-out";
import { Fact } from "../ui/fact";
import { Field } from "../ui/field";
import { useWords } from "../words";
import { useAwayWords } from "../words/away";
import { useGatewayWords } from "../words/gateways";
import { useImportWords } from "../words/imports";
import { useKeyWords } from "../words/keys";
import { language, type Language } from "../words/language";
import { useMemoryWords } from "../words/memory";
import { useOfflineWords } from "../words/offline";
import { useRunningWords } from "../words/running";
import { useUserWords } from "../words/users";
import { KeepSetting } from "./keep-setting";
import { SessionsSection } from "./sessions-section";

const readHealth = (signal: AbortSignal) => api.get<HealthView>("/healthz", {}, signal);

/** Settings of the user and the page; an agent's are on its own page. */
export function SettingsPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const words = useWords();
  const awayWords = useAwayWords();
  const keyWords = useKeyWords();
  const offlineWords = useOfflineWords();
  const gatewayWords = useGatewayWords();
  const memoryWords = useMemoryWords();
  const importWords = useImportWords();
  const runningWords = useRunningWords();
  const userWords = useUserWords();
  const signOut = useSignOut();
  const canSignOut = useCanSignOut();
  const { loaded } = useLoaded(readHealth);
  return (
    <div className="page">
      <TopBar title={words.settings} onMenu={onMenu} />
      <div className="content settings">
        <section aria-labelledby="settings-account">
          <h2 id="settings-account">{words.account}</h2>
          <dl className="facts">
            {me.name && <Fact name={words.name} value={me.name} />}
            <Fact name={words.userId} value={me.id} />
            <Fact name={words.userRole} value={words.userRoles[me.role]} />
          </dl>
          {canSignOut && (
            <button type="button" onClick={() => signOut()}>
              {words.signOut}
            </button>
          )}
        </section>
        {canSignOut && <SessionsSection />}
        {me.role === "admin" && (
          <section aria-labelledby="settings-models">
            <h2 id="settings-models">{gatewayWords.title}</h2>
            <p className="hint">{gatewayWords.intro}</p>
            <a className="button" href={hrefOf({ name: "gateways" })}>
              {gatewayWords.manage}
            </a>
          </section>
        )}
        {me.role === "admin" && (
          <section aria-labelledby="settings-running">
            <h2 id="settings-running">{runningWords.title}</h2>
            <p className="hint">{runningWords.intro}</p>
            <a className="button" href={hrefOf({ name: "running" })}>
              {runningWords.manage}
            </a>
          </section>
        )}
        {me.role === "admin" && !isLocal && (
          <section aria-labelledby="settings-users">
            <h2 id="settings-users">{userWords.title}</h2>
            <p className="hint">{userWords.intro}</p>
            <a className="button" href={hrefOf({ name: "users" })}>
              {userWords.manage}
            </a>
          </section>
        )}
        <section aria-labelledby="settings-appearance">
          <h2 id="settings-appearance">{words.appearance}</h2>
          <div className="columns">
            <Field label={words.language}>
              <select value={useStore(language)} onChange={(event) => setLanguage(event.target.value as Language)}>
                <option value="en">English</option>
                <option value="zh">中文</option>
              </select>
            </Field>
            <Field label={words.theme}>
              <select value={useStore(themeChoice)} onChange={(event) => setTheme(event.target.value as ThemeChoice)}>
                <option value="system">{words.themeSystem}</option>
                <option value="light">{words.light}</option>
                <option value="dark">{words.dark}</option>
              </select>
            </Field>
          </div>
        </section>
        {me.deleteAfterDays !== undefined && (
          <section aria-labelledby="settings-retention">
            <h2 id="settings-retention">{words.conversations}</h2>
            <p className="hint">{words.deleteRule(me.deleteAfterDays)}</p>
          </section>
        )}
        <section aria-labelledby="settings-memory">
          <h2 id="settings-memory">{memoryWords.title}</h2>
          <p className="hint">{memoryWords.intro}</p>
          <a className="button" href={hrefOf({ name: "memory" })}>
            {memoryWords.manage}
          </a>
        </section>
        <section aria-labelledby="settings-import">
          <h2 id="settings-import">{importWords.title}</h2>
          <p className="hint">{importWords.intro}</p>
          <a className="button" href={hrefOf({ name: "import" })}>
            {importWords.manage}
          </a>
        </section>
        <section aria-labelledby="settings-notifications">
          <h2 id="settings-notifications">{awayWords.title}</h2>
          <NotificationSetting />
        </section>
        <section aria-labelledby="settings-offline">
          <h2 id="settings-offline">{offlineWords.title}</h2>
          <KeepSetting me={me} />
        </section>
        <section aria-labelledby="settings-api-keys">
          <h2 id="settings-api-keys">{keyWords.title}</h2>
          <p className="hint">{keyWords.intro}</p>
          <a className="button" href={hrefOf({ name: "keys" })}>
            {keyWords.manage}
          </a>
        </section>
        <section aria-labelledby="settings-keyboard">
          <h2 id="settings-keyboard">{words.keyboard}</h2>
          <button type="button" onClick={() => overlay.set("shortcuts")}>
            {words.shortcuts}
          </button>
        </section>
        {loaded.state === "ready" && (
          <section aria-labelledby="settings-about">
            <h2 id="settings-about">{words.about}</h2>
            <p>{words.serverVersion(loaded.value.version)}</p>
          </section>
        )}
      </div>
    </div>
  );
}
