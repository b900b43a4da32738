import { defineConfig } from "vite";

// The page and the API have one address, so that Threadkeep need not know the page's.
const threadkeep = {
  target: process.env.THREADKEEP_URL ?? "http://127.0.0.1:8710",
  changeOrigin: false,
  // If Threadkeep dies in the middle of an answer, the page must learn it: Vite alone keeps the response open.
  configure: (proxy) => proxy.on("proxyRes", (answer, _, response) => answer.on("error", () => response.destroy())),
};

export default defineConfig({
  server: { host: "127.0.0.1", proxy: { "/api": threadkeep } },
});
