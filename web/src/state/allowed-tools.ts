/** The conversation whose tools that run without asking are listed, if any. */

import { Store } from "@threadkeep/client";

export const allowedToolsOf = new Store<string | null>(null);
