export { ConfirmDialog } from "./confirm-dialog";
export { Palette } from "./palette";
export { Shortcuts } from "./shortcuts";
