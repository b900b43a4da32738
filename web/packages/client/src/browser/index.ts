/** What a browser adds to the client: storage that outlives the page, tabs that share, and progress of uploads. */

export { atNextFrame, browserPlatform } from "./platform.ts";
export { reportingFetch } from "./reporting-fetch.ts";
