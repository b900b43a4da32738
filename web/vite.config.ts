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

export default defineConfig({
  base: "./", // the page may be mounted below a path
  plugins: [react(), packed()],
  build: {
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0, // the policy allows no inline code, and fonts stay apart
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 900,
    // What the page begins with is one file: cut by who else needs its parts it would be larger.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
  server: {
    proxy: {
      "/api": SERVER,
      "/ws": { target: SERVER, ws: true },
    },
  },
  // Making a document anew for each file takes longer than all tests.
  test: {
    environment: "happy-dom",
    isolate: false,
    setupFiles: ["tests/setup.ts"], // runs before every file, which an import of a shared module does not
    testTimeout: 60_000,
    include: ["tests/**/*.test.{ts,tsx}"],
  },
} as Parameters<typeof defineConfig>[0]);
