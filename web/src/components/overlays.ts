export { Palette } from "./palette";
export { Shortcuts } from "./shortcuts";
