import { defineConfig } from "vite";

// The page and the API have one address, so that Threadkeep need not know the page's.
const target = process.env.THREADKEEP_URL ?? "http://127.0.0.1:8710";
const here = { host: "127.0.0.1", proxy: { "/api": { target, changeOrigin: false } } };

export default defineConfig({ server: here, preview: here, build: { chunkSizeWarningLimit: 10_000 } });
