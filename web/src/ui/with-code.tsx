/** A line in which names of tools stand between backticks: they are shown as code. */
export function WithCode({ text }: { text: string }) {
  return text.split("`").map((piece, index) => (index % 2 ? <code key={index}>{piece}</code> : piece));
}

/** A line in which names of people stand between backticks: they stand out, and aren’t code. */
export function WithName({ text }: { text: string }) {
  return text.split("`").map((piece, index) => (index % 2 ? <bdi key={index}>{piece}</bdi> : piece));
}

/** The same line where there is no code, as in a label. */
export function withoutCode(text: string): string {
  return text.replaceAll("`", "");
}
