// A server that an HTTP task calls returns what it was sent, as many servers do when they have no such page. Or it cannot be reached, and the
// error names the host. The secrets of the request must be in no record of the task.

import { expect, it, onTestFinished } from "vitest";
import { LaneFailure, type LaneWork } from "../../src/engine/board/lane-worker.ts";
import { AddressGuard } from "../../src/net/http/address-guard.ts";
import { HttpCalls } from "../../src/protocols/conductor/server/system/http.ts";
import { foreignServer } from "../support/foreign-http.ts";

const secrets: { [name: string]: string } = {
  KEY: "Hunter/2 of+us",
  HOST: "Inside.Invalid",
  SCHEME: "s3cret-scheme",
  LOGIN: '{"user":"bob","password":"p4ss\\"word"}',
};
const used = /hunter|inside\.invalid|s3cret|p4ss/i;

/** Everything that is stored of the task's end, as text. */
async function recordOf(input: object, status = 200): Promise<string> {
  const address = await foreignServer((request, response) => {
    const { authorization = "" } = request.headers;
    response.writeHead(status, `No ${authorization}`, { location: request.url, "x-seen": authorization });
    response.end(JSON.stringify({ path: request.url, text: decodeURIComponent(request.url ?? ""), authorization }));
  });
  const calls = new HttpCalls(new AddressGuard(["127.0.0.1"]), (name) => secrets[name] ?? null);
  onTestFinished(() => calls.close());
  const task = { input: JSON.stringify({ uri: address, method: "GET", ...input }).replaceAll("ADDRESS", address) };
  const work = { task, signal: new AbortController().signal } as unknown as LaneWork;
  const ended = await calls.perform(work).catch((error: unknown) => (error instanceof LaneFailure ? error.report : Promise.reject(error)));
  return JSON.stringify(ended);
}

const key = "${workflow.secrets.KEY}";

it.each([
  { status: 200, uri: `ADDRESS/bot?key=${key}` },
  { status: 404, uri: `ADDRESS/bot?key=${key}` },
  { status: 200, uri: "ADDRESS/", headers: { authorization: `Bearer ${key}` } },
  { status: 500, uri: "ADDRESS/", headers: { authorization: "Basic ${workflow.secrets.LOGIN.password}" } },
])("a response with status $status that repeats the request is stored without the secret", async ({ status, ...input }) => {
  const record = await recordOf(input, status);
  expect(record).toContain("***");
  expect(record).not.toMatch(used);
});

it.each([
  { uri: "http://${workflow.secrets.HOST}/" },
  { uri: "${workflow.secrets.SCHEME}://host/" },
  { uri: "ADDRESS/", method: "${workflow.secrets.SCHEME}" },
])("an error of the request $uri $method names no secret", async (input) => {
  const record = await recordOf(input);
  expect(record).toContain("workflow.secrets.");
  expect(record).not.toMatch(used);
});

it("a value that is shorter than a secret stays in a response", async () => {
  secrets.SHORT = "bot";
  expect(await recordOf({ uri: "ADDRESS/bot?key=${workflow.secrets.SHORT}" })).toContain("/bot?key=bot");
});
