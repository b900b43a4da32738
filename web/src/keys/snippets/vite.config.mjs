import { defineConfig } from "vite";

const threadkeep = "http://127.0.0.1:8710";

// The page's own server adds the key, so no browser sees it.
// Everyone who opens this page uses your key.
const headers = {
  authorization: `Bearer ${process.env.THREADKEEP_KEY}`,
  origin: threadkeep,
};

export default defineConfig({
  server: { proxy: { "/api": { target: threadkeep, changeOrigin: true, headers } } },
});
