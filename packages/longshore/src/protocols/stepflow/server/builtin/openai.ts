// openai: one call of a chat completions API. OPENAI_BASE_URL may name another server with the same API. The key is sent but never
// disclosed: not in logs and not in errors, even when the server repeats it.

import type { Environment } from "../../../../core/environment.ts";
import { toError } from "../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { shown, withoutEndSlashes } from "../../../../core/text.ts";
import { HttpAgent } from "../../../../net/http/agent.ts";
import type { Reply } from "../../../../net/http/send.ts";
import { type ComponentWork, StepFailure } from "../lane.ts";
import { type Component, invalid, listIn, objectIn, objectSchema, optionalText, optionalWhole } from "./component.ts";

export interface OpenAiOptions {
  /** The server's environment. It is read at each call, so that a key can be changed without a restart. */
  readonly environment: Environment;
}

const addressDefault = "https://api.openai.com/v1";
/** As in the reference. */
const modelDefault = "gpt-3.5-turbo";
const roles = ["system", "user", "assistant"];
/** Long answers of slow models take minutes. After this time the call fails. */
const answerMsMax = 600_000;
/** Maximum size of a reply: it is text for people, and no model writes this much. */
const answerBytesMax = 16 * 1_024 * 1_024;
const tokensMax = 1_000_000;

export function openAi(options: OpenAiOptions): Component {
  return {
    path: "/openai",
    description: "Sends chat messages to OpenAI's API, or a compatible one, and returns the reply.",
    inputSchema: objectSchema(
      "OpenAIInput",
      {
        messages: {
          type: "array",
          items: {
            type: "object",
            properties: { role: { enum: [...roles] }, content: { type: "string" } },
            required: ["role", "content"],
          },
        },
        max_tokens: { type: ["integer", "null"] },
        temperature: { type: ["number", "null"] },
        api_key: { type: ["string", "null"], description: "OPENAI_API_KEY of the server when absent." },
        model: { type: ["string", "null"], description: `${modelDefault} when absent.` },
      },
      ["messages"],
    ),
    outputSchema: objectSchema("OpenAIOutput", { response: { type: "string" } }, ["response"]),
    async perform(call) {
      const key = optionalText(call, "api_key") ?? options.environment.OPENAI_API_KEY;
      if (!key) throw invalid(call, "api_key is missing, and the server has no OPENAI_API_KEY");
      const address = options.environment.OPENAI_BASE_URL || addressDefault;
      try {
        return { response: await complete(call, address, key) };
      } catch (thrown) {
        throw withoutKey(thrown, key);
      }
    },
  };
}

function bodyOf(call: ComponentWork): JsonObject {
  const { temperature } = objectIn(call);
  const maxTokens = optionalWhole(call, "max_tokens", 1, tokensMax);
  if (temperature !== undefined && temperature !== null && typeof temperature !== "number") {
    throw invalid(call, `temperature is ${shown(temperature)}, expected a number`);
  }
  return {
    model: optionalText(call, "model") ?? modelDefault,
    messages: listIn(call, "messages").map((message, at) => messageOf(call, message, at)),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(typeof temperature === "number" ? { temperature } : {}),
  };
}

function messageOf(call: ComponentWork, value: Json, at: number): JsonObject {
  const { role, content } = isObject(value) ? (value as JsonObject) : {};
  if (typeof role !== "string" || !roles.includes(role)) {
    throw invalid(call, `messages[${at}].role is ${shown(role ?? null)}, expected one of ${roles.join(", ")}`);
  }
  if (typeof content !== "string") throw invalid(call, `messages[${at}].content is ${shown(content ?? null)}, expected a text`);
  return { role, content };
}

async function complete(call: ComponentWork, address: string, key: string): Promise<string> {
  const text = `${withoutEndSlashes(address)}/chat/completions`;
  const body = JSON.stringify(bodyOf(call));
  if (!URL.canParse(text)) throw invalid(call, "OPENAI_BASE_URL of the server is not an address");
  const reply = await post(new URL(text), key, body, AbortSignal.any([call.signal, AbortSignal.timeout(answerMsMax)]));
  const { status } = reply;
  if (status >= 200 && status < 300) return responseIn(reply.text);
  // An overloaded or broken server may work soon. A refusal will be the same the next time, but the flow may retry it.
  throw trouble(
    status === 429 || status >= 500 ? "RESOURCE_UNAVAILABLE" : "COMPONENT_FAILED",
    `answered ${status}: ${messageIn(reply.text)}`,
  );
}

/** Opens a connection for each call: a model takes much longer than a connection, and nothing has to be closed with the server. */
async function post(url: URL, key: string, body: string, signal: AbortSignal): Promise<Reply> {
  const headers = { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${key}` };
  const agent = new HttpAgent(1);
  const limits = { timeoutMs: answerMsMax, slowMs: answerMsMax, bytesMax: answerBytesMax };
  try {
    return await agent.send({ url, method: "POST", headers, body, signal, ...limits });
  } catch (error) {
    throw trouble("RESOURCE_UNAVAILABLE", `${url.host} cannot be reached: ${toError(error).message}`);
  } finally {
    await agent.close();
  }
}

function responseIn(text: string): string {
  const answer = parsed(text);
  const [choice] = isObject(answer) && Array.isArray(answer.choices) ? (answer.choices as Json[]) : [];
  const message = isObject(choice) ? (choice as JsonObject).message : undefined;
  const content = isObject(message) ? (message as JsonObject).content : undefined;
  if (typeof content === "string") return content;
  throw trouble("COMPONENT_FAILED", "the answer has no choices[0].message.content");
}

/** The error message of the API, or the beginning of a body in another form. */
function messageIn(text: string): string {
  const answer = parsed(text);
  const error = isObject(answer) ? (answer as JsonObject).error : undefined;
  const message = isObject(error) ? (error as JsonObject).message : undefined;
  return typeof message === "string" ? message : text.slice(0, 500);
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // The caller shows the text as it is, or reports the missing field.
    return undefined;
  }
}

function trouble(code: "RESOURCE_UNAVAILABLE" | "COMPONENT_FAILED", message: string): StepFailure {
  return new StepFailure({ code, message: `/openai: ${message}` });
}

function withoutKey(thrown: unknown, key: string): unknown {
  if (!(thrown instanceof StepFailure)) return thrown;
  return new StepFailure({ ...thrown.error, message: thrown.error.message.replaceAll(key, "[REDACTED]") });
}
