import { type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Archive, BarChart3, ChevronsUpDown, Keyboard, ListChecks, LogOut, Settings, Trash2 } from "lucide-react";

import { isLocal } from "../api/api";
import { overlay } from "../state/overlay";
import { setLanguage, setTheme, themeChoice } from "../state/preferences";
import { go } from "../state/route";
import { useCanSignOut, useSignOut } from "../state/use-sign-out";
import { Menu } from "../ui/menu";
import { type MenuGroup } from "../ui/menu-list";
import { nameOf } from "../ui/user-name";
import { useWords } from "../words";
import { language } from "../words/language";

/** The signed-in user's menu: settings, usage, archived and deleted conversations. */
export function ProfileMenu({ me }: { me: MeView }) {
  const words = useWords();
  const signOut = useSignOut();
  const canSignOut = useCanSignOut();
  const spoken = useStore(language);
  const worn = useStore(themeChoice);
  const name = canSignOut && !isLocal ? nameOf(me) : words.you;
  const groups: MenuGroup[] = [
    {
      items: [
        { label: words.settings, icon: Settings, run: () => go({ name: "settings" }) },
        { label: words.usage, icon: BarChart3, run: () => go({ name: "usage" }) },
        { label: words.allConversations, icon: ListChecks, run: () => go({ name: "conversations" }) },
        { label: words.archivedConversations, icon: Archive, run: () => go({ name: "archive" }) },
        { label: words.recentlyDeleted, icon: Trash2, run: () => go({ name: "deleted" }) },
        { label: words.shortcuts, icon: Keyboard, run: () => overlay.set("shortcuts") },
      ],
    },
    {
      label: words.language,
      items: [
        { label: "English", checked: spoken === "en", run: () => setLanguage("en") },
        { label: "中文", checked: spoken === "zh", run: () => setLanguage("zh") },
      ],
    },
    {
      label: words.theme,
      items: [
        { label: words.light, checked: worn === "light", run: () => setTheme("light") },
        { label: words.dark, checked: worn === "dark", run: () => setTheme("dark") },
        { label: words.themeSystem, checked: worn === "system", run: () => setTheme("system") },
      ],
    },
    { items: canSignOut ? [{ label: words.signOut, icon: LogOut, run: () => signOut() }] : [] },
  ];
  return (
    <Menu label={words.profile(name)} className="row profile" hasTip={false} groups={groups}>
      <span className="face" aria-hidden data-letter={[...name][0]?.toUpperCase()} />
      <span className="title">{name}</span>
      <ChevronsUpDown aria-hidden />
    </Menu>
  );
}
