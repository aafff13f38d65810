import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { JsonClient } from "./json-client.ts";

async function setup(answer: { status: number; body: string }, options: { path?: string; token?: string } = {}) {
  const seen: { url: string; authorization: string | undefined; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ url: request.url ?? "", authorization: request.headers.authorization, body });
    response.writeHead(answer.status).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}${options.path ?? ""}`);
  const client = await JsonClient.open({ url, token: options.token, connections: 2 });
  onTestFinished(async () => {
    await client.close();
    await new Promise((resolve) => server.close(resolve));
  });
  return { client, seen, server };
}

describe("a client of JSON", () => {
  it("sends its token and body to a path below its address, and returns the value", async () => {
    const { client, seen } = await setup({ status: 201, body: '{"ok":true}' }, { path: "/below/", token: "s3cret" });
    expect(await client.call({ method: "POST", path: "/x?y=1", body: "{}" })).toEqual({ ok: true });
    expect(seen).toEqual([{ url: "/below/x?y=1", authorization: "Bearer s3cret", body: "{}" }]);
  });

  it.each([
    [400, '{"error":{"code":"LONGSHORE_BAD_INPUT","message":"parts is 3"}}', "LONGSHORE_BAD_INPUT", "parts is 3"],
    [409, '{"error":{"code":"LONGSHORE_CONFLICT","message":"no"}}', "LONGSHORE_CONFLICT", "no"],
    [401, "{}", "LONGSHORE_UNAUTHORIZED", "status 401: {}"],
    [429, '{"error":{"code":"LONGSHORE_LIMIT","message":"later"}}', "LONGSHORE_UNREACHABLE", "later"],
    [503, "", "LONGSHORE_UNREACHABLE", "status 503"],
    [404, "<html>", "LONGSHORE_UNREACHABLE", "status 404: <html>"],
    [200, "no json", "LONGSHORE_UNREACHABLE", "status 200: no json"],
  ])("turns %i %s into %s", async (status, body, code, said) => {
    const { client } = await setup({ status, body });
    const failure = (await client.call({ method: "GET", path: "/x" }).catch((error: unknown) => error)) as Error;
    expect(failure).toMatchObject({ code });
    expect(failure.message).toMatch(/^GET http:\/\/127\.0\.0\.1:\d+\/x: /);
    expect(failure.message.endsWith(said)).toBe(true);
  });

  it("passes on the place of the mistake", async () => {
    const error = { code: "LONGSHORE_BAD_INPUT", message: "no", field: "parts", expected: "a list" };
    const { client } = await setup({ status: 400, body: JSON.stringify({ error }) });
    await expect(client.call({ method: "GET", path: "/x" })).rejects.toMatchObject({ detail: { field: "parts", expected: "a list" } });
  });

  it("reports that there is no server", async () => {
    const { client, server } = await setup({ status: 200, body: "{}" });
    await new Promise((resolve) => server.close(resolve));
    await expect(client.call({ method: "GET", path: "/" })).rejects.toMatchObject({ code: "LONGSHORE_UNREACHABLE" });
  });

  it("throws the abort reason of its signal", async () => {
    const { client } = await setup({ status: 200, body: "{}" });
    const gone = AbortSignal.abort(new Error("enough"));
    await expect(client.call({ method: "GET", path: "/", signal: gone })).rejects.toThrow("enough");
  });
});
