/** Our sign: lines of a conversation, and the thread that holds them. */
export function Logo() {
  return (
    <svg className="logo" viewBox="0 0 32 32" aria-hidden>
      <rect width="32" height="32" rx="8" />
      <path d="M8 11h16M8 16c4 0 4 5 8 5s4-5 8-5M8 21h3m10 0h3" />
    </svg>
  );
}
