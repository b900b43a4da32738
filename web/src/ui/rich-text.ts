/** What is shown of a text, as HTML for other programs: its typesetting, without the page's own buttons and classes. */

const KEPT = ["href", "start", "colspan", "rowspan", "align"];

export function richText(shown: ParentNode): string {
  return [...shown.querySelectorAll('[data-kind="text"] > .markdown')].map(cleaned).join("");
}

function cleaned(markdown: Element): string {
  const copy = markdown.cloneNode(true) as Element;
  for (const it of copy.querySelectorAll(".katex")) it.replaceWith(it.querySelector("annotation")?.textContent ?? it.textContent);
  for (const it of copy.querySelectorAll("button, svg, .unseen, figcaption, header")) it.remove();
  for (const it of copy.querySelectorAll('a[href^="#"][href*="fnref-"]')) it.remove();
  // Elsewhere a link within this page leads nowhere.
  for (const it of copy.querySelectorAll('a[href^="#"]')) it.replaceWith(...it.childNodes);
  // Other programs read a column's alignment only there.
  for (const it of copy.querySelectorAll<HTMLElement>("th, td")) if (it.style.textAlign) it.setAttribute("align", it.style.textAlign);
  // A preview is of this page only.
  for (const it of copy.querySelectorAll<HTMLElement>("[data-code]")) it.replaceWith(asCode(it.dataset["code"]!));
  for (const it of copy.querySelectorAll("pre")) it.replaceWith(asCode(it.textContent));
  // Other programs know a figure or a division only as a break.
  for (const it of copy.querySelectorAll("div, figure, section")) it.replaceWith(...it.childNodes);
  for (const it of copy.querySelectorAll("*"))
    for (const { name } of [...it.attributes]) if (!KEPT.includes(name)) it.removeAttribute(name);
  return copy.innerHTML;
}

function asCode(text: string): HTMLElement {
  const pre = document.createElement("pre");
  pre.appendChild(document.createElement("code")).textContent = text;
  return pre;
}
