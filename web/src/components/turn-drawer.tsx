export function TurnDrawer(_: { turnId: string; onClose: () => void }) {
  return null;
}
