// The attacker holds an operator token and sends YAML definitions of the maximum size: very many jobs, or very many equal keys. The parser
// needs seconds for such a text. It must run outside the event loop, for one text at a time, and for a limited time.

import { expect, it, onTestFinished, vi } from "vitest";
import { Parser } from "yaml";
import { systemClock } from "../../src/core/clock.ts";
import { definitionParser } from "../../src/server/definition-file.ts";
import { DefinitionReader, hereCharsMax, largeMax } from "../../src/server/definition-reader.ts";
import { serve } from "../../src/server/server.ts";
import { call } from "../support/http.ts";

const parseDefinition = await definitionParser();
const start = "name: CI\non: push\njobs:\n";
const job = (at: number) => `  job-${at}: { run: "true" }\n`;
const jobs = (count: number) => start + Array.from({ length: count }, (_, at) => job(at)).join("");
/** Some hundred kilobytes, which take hundreds of milliseconds in the parser. */
const large = jobs(10_000);
const file = "ci.yaml";

/** The characters of the longest text that the YAML parser received on this thread. */
function longestParsed() {
  const parse = vi.spyOn(Parser.prototype, "parse");
  onTestFinished(() => parse.mockRestore());
  return () => Math.max(0, ...parse.mock.calls.map(([text]) => text.length));
}

it("a large definition is not parsed on the thread that handles requests", async () => {
  const server = await serve({ ephemeral: true, port: 0 });
  onTestFinished(() => server.close(0));
  const longest = longestParsed();
  const headers = { "content-type": "application/yaml" };
  const define = (body: string) => call(`${server.url}/api/longshore/v1/definitions`, { method: "POST", headers, body });
  expect((await define(large)).status).toBe(201);
  expect(longest()).toBe(0);
  const small = jobs(2);
  expect((await define(small)).status).toBe(201);
  expect(longest()).toBe(small.length);
});

it("no thread is started before the first large text", async () => {
  const reader = new DefinitionReader(systemClock);
  expect(await reader.read({ text: jobs(2), file })).toMatchObject({ name: "ci", dialect: "workflow-graph" });
  expect(reader.threads).toBe(0);
  const text = jobs(1_000);
  expect(text.length).toBeGreaterThan(hereCharsMax);
  expect(await reader.read({ text, file })).toEqual(parseDefinition(text, file));
  expect(reader.threads).toBe(1);
});

it("a text that takes longer than the limit is ended", async () => {
  const text = `${start}  a: { run: x }\n${"  b: x\n".repeat(200_000)}`;
  await expect(new DefinitionReader(systemClock, 1).read({ text, file })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_DEFINITION",
    message: "Reading the definition takes more than 0.001 s, which is the limit.",
  });
});

it("when there are too many large texts at once, the last is refused until others have ended", async () => {
  const reader = new DefinitionReader(systemClock, 1);
  const sendAll = () => Promise.allSettled(Array.from({ length: largeMax + 1 }, () => reader.read({ text: large, file })));
  for (const threads of [largeMax, 2 * largeMax]) {
    const sent = await sendAll();
    const codes = sent.map((one) => (one as PromiseRejectedResult).reason.code);
    expect(codes).toEqual([...Array(largeMax).fill("LONGSHORE_BAD_DEFINITION"), "LONGSHORE_LIMIT"]);
    expect(sent.at(-1)).toMatchObject({ reason: { message: expect.stringContaining(`${largeMax} definitions`) } });
    expect(reader.threads).toBe(threads);
  }
});

it.each([
  ["that is not YAML", "  last: [\n", "This is not YAML: ", 1_005],
  ["with a key that is there twice", job(0), "The key 'job-0' is there twice.", 1_004],
])("a large text %s is refused with its place", async (_, end, message, line) => {
  const reader = new DefinitionReader(systemClock);
  const text = jobs(1_000) + end;
  const error = await reader.read({ text, file }).catch((reason: unknown) => reason);
  const here = await Promise.resolve()
    .then(() => parseDefinition(text, file))
    .catch((reason: unknown) => reason);
  expect(error).toEqual(here);
  expect(error).toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", message: expect.stringContaining(message), detail: { line } });
});
