import OpenAI from "openai";

const client = new OpenAI({
  baseURL: "http://127.0.0.1:8710/v1",
  apiKey: process.env.THREADKEEP_KEY,
});
const response = await client.responses.create({
  model: "Assistant",
  input: "Hello! What can you do?",
});
console.log(response.output_text);
