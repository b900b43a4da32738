export function UsagePage(_: { onMenu: () => void }) {
  return null;
}
