"""The UI message stream of Vercel's AI SDK, versions 5, 6 and 7, which assistant-ui speaks, too."""
