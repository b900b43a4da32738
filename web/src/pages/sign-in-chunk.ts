/** What those see who are not signed in yet: loaded when it is needed. */

export { Invitation } from "./invitation";
export { SignIn } from "./sign-in";
