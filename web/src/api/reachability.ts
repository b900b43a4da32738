/** Whether the server can be reached, as far as the page's last request says. */

import { Store } from "@threadkeep/client";

export const isReached = new Store(true);

/** How often the server came back, and said who the user is. */
export const returns = new Store(0);
