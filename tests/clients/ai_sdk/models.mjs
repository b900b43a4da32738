// Models of the AI SDK's own providers, unmodified, at an address and with a token that a test gives them.
import { createInterface } from "node:readline";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

const PROVIDERS = {
  openai: (access) => createOpenAI(access).chat("default"),
  "openai-compatible": (access) =>
    createOpenAICompatible({
      name: "threadkeep",
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...access,
    })("default"),
};

const modelOf = ({ provider, baseURL, apiKey }) => PROVIDERS[provider]({ baseURL, apiKey });

const temperature = tool({
  description: "How warm it is in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => city.length,
});
const withTools = { tools: { temperature }, stopWhen: isStepCount(3) };
const City = Output.object({ schema: z.object({ name: z.string(), people: z.number() }) });

const shown = async (result) => ({
  text: await result.text,
  finishReason: await result.finishReason,
  tokens: (await result.totalUsage).totalTokens,
  calls: (await result.steps).flatMap((it) => it.toolResults.map(({ toolName, output }) => [toolName, output])),
});

const commands = {
  async generate({ prompt, ...access }) {
    return shown(await generateText({ model: modelOf(access), prompt, ...withTools }));
  },
  async stream({ prompt, ...access }) {
    const result = streamText({ model: modelOf(access), prompt, ...withTools });
    const pieces = [];
    for await (const piece of result.textStream) pieces.push(piece);
    return { ...(await shown(result)), pieces };
  },
  async object({ prompt, ...access }) {
    return (await generateText({ model: modelOf(access), prompt, output: City })).output;
  },
  async streamObject({ prompt, ...access }) {
    const result = streamText({ model: modelOf(access), prompt, output: City });
    for await (const _ of result.partialOutputStream);
    return result.output;
  },
  async fail({ prompt, ...access }) {
    const error = await generateText({ model: modelOf(access), prompt, maxRetries: 0 }).catch((error) => error);
    return { message: error.message, status: error.statusCode, isRetryable: error.isRetryable };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, number, ...options } = JSON.parse(line);
  commands[command](options).then(
    (result) => console.log(JSON.stringify({ number, result: result ?? null })),
    (error) => console.log(JSON.stringify({ number, error: String(error?.stack ?? error) })),
  );
}
