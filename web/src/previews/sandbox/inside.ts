/** Runs inside the sandbox: shows what the page hands over, and reports its height. */

import { type Content, type Look, type Report } from "./messages";

interface Mermaid {
  initialize(options: object): void;
  render(id: string, source: string): Promise<{ svg: string }>;
}
declare const mermaid: Mermaid;

const BEAT_MS = 2000;
const MOST_HOSTS = 3;
const XMLNS = "http://www.w3.org/2000/svg";

// What runs here later can't take these away.
const page = parent;
const { origin } = location;
const tell = (report: Report) => page.postMessage(report, origin);

addEventListener("message", function take({ source, origin: from, data }: MessageEvent<Content>) {
  if (source !== page || from !== origin) return;
  removeEventListener("message", take);
  setInterval(() => tell({ type: "alive" }), BEAT_MS);
  show(data).catch((error: unknown) => tell({ type: "broken", reason: error instanceof Error ? error.message : String(error) }));
});

async function show({ kind, source, label, look, isFilling }: Content): Promise<void> {
  if (kind === "html") return showPage(source);
  document.documentElement.style.colorScheme = kind === "mermaid" && look.dark ? "dark" : "light";
  // What is still being drawn can't be shown yet.
  document.body.style.cssText = "box-sizing: border-box; margin: 0; padding: 16px; visibility: hidden";
  const svg = kind === "svg" ? parseSvg(source) : await drawDiagram(source, look);
  await showImage(svg, label, isFilling);
}

// Pages: as they are, with their scripts.

function showPage(html: string): void {
  forbidPeers();
  document.open();
  // Opening it has removed all listeners.
  reportBlocked();
  forbidFrames(document);
  document.write(html.replace(/shadowrootmode/gi, "data-$&"));
  document.close();
  watchHeight();
}

/** No policy covers connections to peers, which could carry a message out. */
function forbidPeers(): void {
  for (const name of Object.getOwnPropertyNames(window)) if (/^(webkit)?RTC/.test(name)) Reflect.deleteProperty(window, name);
  for (const name of ["setHTMLUnsafe", "parseHTMLUnsafe"]) {
    for (const owner of [Element.prototype, ShadowRoot.prototype, Document]) Reflect.deleteProperty(owner, name);
  }
  const { attachShadow } = Element.prototype;
  Element.prototype.attachShadow = function (options) {
    const root = attachShadow.call(this, options);
    forbidFrames(root);
    return root;
  };
}

/** A frame would bring new means of connecting. It is removed before anything in it runs. */
function forbidFrames(root: Node): void {
  const remove = () => (root as ParentNode).querySelectorAll("iframe, frame, object, embed").forEach((it) => it.remove());
  new MutationObserver(remove).observe(root, { childList: true, subtree: true });
}

/** Says which hosts the content wanted something from. */
function reportBlocked(): void {
  const hosts = new Set<string>();
  document.addEventListener("securitypolicyviolation", ({ blockedURI }) => {
    const host = URL.canParse(blockedURI) ? new URL(blockedURI).host : "";
    if (!host || hosts.has(host) || hosts.size >= MOST_HOSTS) return;
    hosts.add(host);
    tell({ type: "blocked", host });
  });
}

// Images: in an element for images, where neither scripts nor links of theirs work.

function parseSvg(source: string): Element {
  const complete = /<svg[^>]*\sxmlns=/.test(source) ? source : source.replace("<svg", `<svg xmlns="${XMLNS}"`);
  const root = new DOMParser().parseFromString(complete.trim(), "image/svg+xml").documentElement;
  const fault = root.querySelector("parsererror");
  if (fault) throw new Error((fault.querySelector("div") ?? fault).textContent.trim());
  if (root.localName !== "svg") throw new Error(`<${root.localName}>`);
  return root;
}

async function drawDiagram(source: string, look: Look): Promise<Element> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    htmlLabels: false,
    fontFamily: look.font,
    theme: "base",
    themeVariables: {
      darkMode: look.dark,
      background: look.paper,
      fontFamily: look.font,
      fontSize: "15px",
      dropShadow: "none",
      useGradient: false,
      radius: 6,
      primaryColor: look.soft,
      primaryBorderColor: look.accent,
      primaryTextColor: look.ink,
      secondaryColor: look.sunk,
      tertiaryColor: look.paper,
      lineColor: look.line,
      textColor: look.ink,
      noteBkgColor: look.sunk,
      noteBorderColor: look.line,
      noteTextColor: look.ink,
    },
  });
  const { svg } = await mermaid.render("diagram", source).catch((error: Error) => {
    throw new Error(error.message.replace(/\s*Expecting '[\s\S]*/, "")); // every token of the grammar
  });
  // As HTML, which it is; nothing in it runs there.
  return new DOMParser().parseFromString(svg, "text/html").querySelector("svg")!;
}

async function showImage(svg: Element, label: string, isFilling: boolean): Promise<void> {
  const [width, height] = sizeOf(svg);
  const image = new Image();
  image.alt = svg.querySelector(":scope > title")?.textContent || label;
  const largest = `min(100vw - 32px, (100vh - 32px) * ${width / height})`;
  const shown = isFilling ? `width: ${largest}` : `width: ${width}px; max-width: 100%`;
  image.style.cssText = `${shown}; display: block; margin: auto; aspect-ratio: ${width} / ${height}`;
  if (!svg.getAttribute("viewBox")) svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  image.src = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
  await image.decode();
  if (isFilling) document.body.style.cssText += "; display: grid; align-content: center; min-height: 100vh";
  document.body.replaceChildren(image);
  document.body.style.visibility = "visible";
  watchHeight();
}

const FALLBACK = [640, 360] as const;

/** In pixels; what is relative fills the frame's width. */
function sizeOf(svg: Element): readonly [number, number] {
  const box = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  const ratio = box.length === 4 && box[2]! > 0 && box[3]! > 0 ? box[3]! / box[2]! : null;
  const width = pixels(svg.getAttribute("width"));
  const height = pixels(svg.getAttribute("height"));
  if (width && height) return [width, height];
  if (ratio) return width ? [width, width * ratio] : height ? [height / ratio, height] : [box[2]!, box[3]!];
  return [width ?? FALLBACK[0], height ?? FALLBACK[1]];
}

function pixels(length: string | null): number | null {
  const found = /^\s*([\d.]+)(px)?\s*$/.exec(length ?? "");
  return found && Number(found[1]) > 0 ? Number(found[1]) : null;
}

function watchHeight(): void {
  const root = document.documentElement;
  const measure = () => {
    const overflow = root.scrollHeight > innerHeight ? root.scrollHeight : 0;
    tell({ type: "height", height: Math.ceil(Math.max(root.getBoundingClientRect().height, overflow)) });
  };
  measure(); // the browser observes nothing in a frame that isn't seen yet
  const watch = new ResizeObserver(measure);
  watch.observe(root);
  if (document.body) watch.observe(document.body);
}
