import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import react from "@vitejs/plugin-react";
import subsetFont from "subset-font";
import { build, defineConfig, type Plugin, type Rolldown } from "vite";

import { PIECES, WEIGHTS } from "./src/typeface/pieces.ts";

const SERVER = "http://127.0.0.1:8710";

/** Packs every file once, when it is built, instead of at every request. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    closeBundle() {
      const folder = join(import.meta.dirname, "dist", "assets");
      // Every browser that runs the page reads woff2.
      for (const name of readdirSync(folder).filter((it) => /\.(ttf|woff)$/.test(it))) rmSync(join(folder, name));
      for (const name of readdirSync(folder).filter((it) => /\.(js|css|svg)$/.test(it))) {
        const content = readFileSync(join(folder, name));
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        // For a large file, the last percents would take ten times as long.
        const params = { [constants.BROTLI_PARAM_QUALITY]: content.length > 1_000_000 ? 9 : 11 };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
      }
    },
  };
}

/** Cuts the pieces that the page needs out of the typeface, and adds its licence to the page's files. */
function typeface(): Plugin {
  const modules = join(import.meta.dirname, "node_modules");
  const whole = join(modules, "@fontsource-variable", "inter");
  const cut = join(modules, ".typeface");
  return {
    name: "typeface",
    enforce: "pre",
    async resolveId(source) {
      const piece = /^typeface:(.+)\.woff2$/.exec(source)?.[1];
      if (!piece) return null;
      const font = readFileSync(join(whole, "files", `inter-${piece}-wght-normal.woff2`));
      const letters = lettersOf(PIECES[piece as keyof typeof PIECES]);
      const made = await subsetFont(font, letters, { targetFormat: "woff2", variationAxes: { wght: WEIGHTS }, keepFeatures: FEATURES });
      mkdirSync(cut, { recursive: true });
      writeFileSync(join(cut, `inter-${piece}.woff2`), made);
      return join(cut, `inter-${piece}.woff2`);
    },
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "assets/inter-license.txt", source: readFileSync(join(whole, "LICENSE")) });
    },
  };
}

/** Kerning, accents, better punctuation, and digits of one width. */
const FEATURES = ["kern", "ccmp", "locl", "mark", "mkmk", "calt", "case", "tnum"];

function lettersOf(ranges: string): string {
  return ranges
    .split(",")
    .map((range) => range.replace("U+", "").split("-").map((it) => parseInt(it, 16)))
    .flatMap(([from, to = from]) => Array.from({ length: to! - from! + 1 }, (_, index) => String.fromCodePoint(from! + index)))
    .join("");
}

/** What makes the page installable. All of it is relative, since the page may be mounted below a path. */
function installable(): Plugin {
  const hashed = (name: string, ending: string, content: Uint8Array | string) =>
    `${name}-${createHash("sha256").update(content).digest("hex").slice(0, 8)}.${ending}`;
  const icons = [
    { name: "icon-192", sizes: "192x192", purpose: "any" },
    { name: "icon-512", sizes: "512x512", purpose: "any" },
    { name: "icon-maskable-512", sizes: "512x512", purpose: "maskable" },
  ].map(({ name, ...icon }) => {
    const content = readFileSync(join(import.meta.dirname, "src", "icons", `${name}.png`));
    return { content, entry: { src: `./${hashed(name, "png", content)}`, type: "image/png", ...icon } };
  });
  const manifest = JSON.stringify({
    name: "Threadkeep",
    short_name: "Threadkeep",
    // The manifest is one folder below the page.
    start_url: "../",
    scope: "../",
    display: "standalone",
    background_color: "#fdfcfa",
    theme_color: "#fdfcfa",
    icons: icons.map(({ entry }) => entry),
  });
  const fileName = `assets/${hashed("manifest", "webmanifest", manifest)}`;
  return {
    name: "installable",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName, source: manifest });
      for (const { content, entry } of icons)
        this.emitFile({ type: "asset", fileName: `assets/${entry.src.slice(2)}`, source: content });
    },
    // Behind a sign-in of a proxy or a host, it is not given without the cookie.
    transformIndexHtml: () => [
      { tag: "link", attrs: { rel: "manifest", href: `./${fileName}`, crossorigin: "use-credentials" }, injectTo: "head" },
    ],
  };
}

/** A file above this size is kept for offline use only once it was used: charts, formulas, languages of code. */
const LARGEST_KEPT_FROM_START = 200_000;

/** Builds the worker that opens the page without its server, with the names of the files that it keeps from the start. */
function offline(): Plugin {
  const source = join(import.meta.dirname, "src");
  return {
    name: "offline",
    apply: "build",
    enforce: "post", // when all names are known
    async generateBundle(_, bundle) {
      const all = Object.keys(bundle).filter((it) => it.startsWith("assets/")).sort();
      const release = createHash("sha256").update(all.join()).digest("hex").slice(0, 12);
      const files = keptFromStart(bundle, source);
      const built = await build({
        configFile: false,
        root: import.meta.dirname,
        logLevel: "warn",
        define: { RELEASE: JSON.stringify(release), KEPT_FROM_START: JSON.stringify(files) },
        build: {
          write: false,
          target: "es2022",
          lib: { entry: join(source, "offline", "worker", "service-worker.ts"), formats: ["iife"], name: "worker", fileName: "service-worker" },
        },
      });
      const [{ output }] = built as Rolldown.RolldownOutput[];
      this.emitFile({ type: "asset", fileName: "service-worker.js", source: (output[0] as Rolldown.OutputChunk).code });
    },
  };
}

/** What the page loads first, and its own parts that are loaded later, with their styles and fonts; not large ones, nor packages. */
function keptFromStart(bundle: Rolldown.OutputBundle, source: string): string[] {
  const kept = new Set<string>();
  const keep = (name: string, limit = LARGEST_KEPT_FROM_START) => {
    const it = bundle[name];
    if (!it || kept.has(name)) return;
    if (it.type === "asset") return void kept.add(name);
    if (it.code.length > limit) return;
    kept.add(name);
    for (const other of it.imports) keep(other, limit);
    const { importedCss = [], importedAssets = [] } = it.viteMetadata ?? {};
    for (const other of [...importedCss, ...[...importedAssets].filter((it) => /\.(woff2|svg)$/.test(it))]) keep(other);
  };
  for (const it of Object.values(bundle)) {
    if (it.type !== "chunk") continue;
    if (it.isEntry) keep(it.fileName, Infinity);
    else if (it.isDynamicEntry && it.facadeModuleId?.startsWith(source)) keep(it.fileName);
  }
  const html = String((bundle["index.html"] as Rolldown.OutputAsset).source);
  for (const [, name] of html.matchAll(/"\.\/(assets\/[^"]+\.(?:js|css|svg|webmanifest))"/g)) keep(name!, Infinity);
  return [...kept].sort();
}

/** Of the API's views: copies of them are read only by pages that know the same ones. */
const shape = createHash("sha256").update(readFileSync(join(import.meta.dirname, "packages/client/src/schema.ts"))).digest("hex").slice(0, 12);

export default defineConfig({
  define: { API_SHAPE: JSON.stringify(shape) },
  base: "./", // the page may be mounted below a path
  plugins: [react(), typeface(), installable(), offline(), packed()],
  build: {
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0, // the policy allows no inline code, and fonts stay apart
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    // The first load is one file: split by who shares which parts, it would be larger.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
  worker: { format: "es" }, // the languages of code are loaded one by one there, too
  server: {
    // The server takes writes only from pages of the host that it is called by.
    proxy: { "/api": { target: SERVER, changeOrigin: false } },
  },
  test: {
    // Each file has a document of its own: in a shared one, what a file leaves behind can hang another's requests.
    isolate: true,
    testTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "page",
          environment: "happy-dom",
          setupFiles: ["tests/setup.ts"], // runs before every file, which an import of a shared module does not
          include: ["tests/**/*.test.{ts,tsx}"],
        },
      },
      // Without a document: the client needs none.
      { extends: true, test: { name: "client", environment: "node", include: ["packages/client/tests/**/*.test.ts"] } },
      { extends: true, test: { name: "react", environment: "happy-dom", include: ["packages/react/tests/**/*.test.tsx"] } },
    ],
  },
} as Parameters<typeof defineConfig>[0]);
