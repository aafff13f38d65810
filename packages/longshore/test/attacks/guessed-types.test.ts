// A worker stores a page with a script as a blob, or as a log, and sends its address to an operator. A browser that guesses content types
// would show the page and run the script with the server's origin and the rights of the operator.

import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/index.ts";

const page = "<!doctype html><script>fetch('/api/longshore/v1/runs')</script>";
const operator = "operator-secret-0123456789";

async function production() {
  const server = await serve({ ephemeral: true, port: 0, tokens: [`operator:${operator}:operator`], logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  return (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, { ...init, headers: { authorization: `Bearer ${operator}`, ...init.headers } });
}

it("no response lets a browser guess its type: neither a stored page, a refusal, a stream nor metrics", async () => {
  const send = await production();
  const stored = await send("/api/longshore/v1/blobs", { method: "POST", body: page });
  const { hash } = (await stored.json()) as { hash: string };
  const answers = {
    stored,
    "the page": await send(`/api/longshore/v1/blobs/${hash}`),
    "its head": await send(`/api/longshore/v1/blobs/${hash}`, { method: "HEAD" }),
    "a refusal": await fetch(stored.url),
    "no such path": await send("/nowhere"),
    health: await send("/health"),
    metrics: await send("/metrics"),
    "a Conductor refusal": await send("/api/workflow/none"),
    "an event stream": await send("/api/longshore/v1/events"),
    dashboard: await send("/"),
  };
  const guessed = Object.entries(answers).filter(([, answer]) => answer.headers.get("x-content-type-options") !== "nosniff");
  expect(guessed.map(([name]) => name)).toEqual([]);
  expect(answers["the page"].headers.get("content-type")).toBe("application/octet-stream");
  expect(await answers["the page"].text()).toBe(page);
  for (const answer of Object.values(answers)) await answer.body?.cancel().catch(() => {});
});
