export function AgentPage(_: { id: string; me: unknown; onMenu: () => void }) {
  return null;
}
