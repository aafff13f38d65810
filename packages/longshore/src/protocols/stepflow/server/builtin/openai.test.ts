import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { callOf } from "../../../../../test/support/stepflow-call.ts";
import type { Json } from "../../../../core/json/json.ts";
import { openAi } from "./openai.ts";

const key = "sk-secret-0123456789";
const messages = [{ role: "user", content: "hi" }];

async function setup(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const asked: { url: string | undefined; authorization: string | undefined; body: Json }[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    asked.push({ url: request.url, authorization: request.headers.authorization, body: JSON.parse(body) });
    answer(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`;
  const ask = async (input: Json, environment: { [name: string]: string } = { OPENAI_API_KEY: key }, signal?: AbortSignal) =>
    openAi({ environment: { OPENAI_BASE_URL: address, ...environment } }).perform(
      callOf("/openai", input, signal === undefined ? {} : { signal }),
    );
  return { asked, ask };
}

const reply = (status: number, body: unknown) => (_request: IncomingMessage, response: ServerResponse) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};
const hello = reply(200, { choices: [{ message: { role: "assistant", content: "Hello!" } }] });
const failure = (code: string, message: string) =>
  expect.objectContaining({ error: expect.objectContaining({ code }), message: expect.stringContaining(message) });

describe("openai", () => {
  it("requests a completion with the server's key, or the one in the input", async () => {
    const { asked, ask } = await setup(hello);
    expect(await ask({ messages, max_tokens: 5, temperature: 0.5 })).toEqual({ response: "Hello!" });
    expect(await ask({ messages, max_tokens: null, api_key: "sk-other", model: "another" })).toEqual({ response: "Hello!" });
    expect(asked).toEqual([
      {
        url: "/v1/chat/completions",
        authorization: `Bearer ${key}`,
        body: { model: "gpt-3.5-turbo", messages, max_tokens: 5, temperature: 0.5 },
      },
      { url: "/v1/chat/completions", authorization: "Bearer sk-other", body: { model: "another", messages } },
    ]);
  });

  it("reports what is wrong with its input before any request", async () => {
    const { asked, ask } = await setup(hello);
    await expect(ask({ messages }, {})).rejects.toThrow(failure("INVALID_INPUT", "api_key is missing"));
    await expect(ask({})).rejects.toThrow(failure("INVALID_INPUT", "messages is missing, expected a list"));
    await expect(ask({ messages: [{ role: "king", content: "" }] })).rejects.toThrow(
      failure("INVALID_INPUT", 'messages[0].role is "king"'),
    );
    await expect(ask({ messages: [{ role: "user" }] })).rejects.toThrow(failure("INVALID_INPUT", "messages[0].content is null"));
    await expect(ask({ messages, temperature: "hot" })).rejects.toThrow(failure("INVALID_INPUT", "temperature"));
    await expect(ask({ messages, max_tokens: 0 })).rejects.toThrow(failure("INVALID_INPUT", "max_tokens is 0"));
    expect(asked).toEqual([]);
  });

  it("distinguishes a transient error from a refusal, and never discloses the key", async () => {
    for (const [status, code] of [
      [401, "COMPONENT_FAILED"],
      [400, "COMPONENT_FAILED"],
      [429, "RESOURCE_UNAVAILABLE"],
      [503, "RESOURCE_UNAVAILABLE"],
    ] as const) {
      const { ask } = await setup(reply(status, { error: { message: `Incorrect API key provided: ${key}` } }));
      await expect(ask({ messages })).rejects.toThrow(failure(code, `answered ${status}: Incorrect API key provided: [REDACTED]`));
    }
    const { ask } = await setup((_request, response) => response.destroy());
    await expect(ask({ messages })).rejects.toThrow(failure("RESOURCE_UNAVAILABLE", "cannot be reached"));
  });

  it("reports invalid answers", async () => {
    for (const body of [{}, { choices: [] }, { choices: [{ message: { content: null } }] }, []]) {
      const { ask } = await setup(reply(200, body));
      await expect(ask({ messages })).rejects.toThrow(failure("COMPONENT_FAILED", "choices[0].message.content"));
    }
    const { ask } = await setup((_request, response) => response.writeHead(502).end("<html>bad gateway</html>"));
    await expect(ask({ messages })).rejects.toThrow(failure("RESOURCE_UNAVAILABLE", "answered 502: <html>bad gateway"));
  });

  it("does not follow a redirect, which would send the key to another address", async () => {
    const { asked, ask } = await setup((_request, response) => response.writeHead(307, { location: "/elsewhere" }).end("moved"));
    await expect(ask({ messages })).rejects.toThrow(failure("COMPONENT_FAILED", "answered 307: moved"));
    expect(asked).toHaveLength(1);
  });

  it("stops the request when it is cancelled", async () => {
    const stop = new AbortController();
    const { ask } = await setup(() => stop.abort());
    await expect(ask({ messages }, { OPENAI_API_KEY: key }, stop.signal)).rejects.toThrow(
      failure("RESOURCE_UNAVAILABLE", "cannot be reached"),
    );
  });
});
