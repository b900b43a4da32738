import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

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
        const params = { [constants.BROTLI_PARAM_QUALITY]: 10 };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
      }
    },
  };
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

export default defineConfig({
  base: "./", // the page may be mounted below a path
  plugins: [react(), installable(), packed()],
  build: {
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0, // the policy allows no inline code, and fonts stay apart
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    // The first load is one file: split by who shares which parts, it would be larger.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
  server: {
    // The server takes writes only from pages of the host that it is called by.
    proxy: { "/api": { target: SERVER, changeOrigin: false } },
  },
  test: {
    // A new document for each file takes longer than all tests.
    isolate: false,
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
