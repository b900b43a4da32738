import { followLanguage } from "../words";
import { followReturnedFiles } from "./attachments";
import { followDrafts } from "./drafts";
import { followFrontEnd } from "./front-end";
import { followTime } from "./minute";
import { forgetPreviews } from "./previews";
import { followAddress } from "./route";
import { followSession, session } from "./session";

/** All that the page follows from its start on. No module does so when it is imported: the order of imports doesn't matter. */
export function followAll(): void {
  followAddress();
  followSession();
  followFrontEnd();
  followDrafts();
  followReturnedFiles();
  followLanguage();
  followTime();
  session.subscribe(forgetPreviews);
}
