// Sends every `http` block of the protocol's README, in order, to a real server, and reads its definition file. A block has a request, an
// empty line if a body follows, and the response, which begins with its status. `{name}` matches any value when it first appears in a
// response, and the same value from then on.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { parseFile } from "../../../src/protocols/workflow-graph/dialect/file.ts";
import { type Answer, startGraphServer } from "../../support/workflow-graph.ts";

const readme = readFileSync(new URL("../../../src/protocols/workflow-graph/README.md", import.meta.url), "utf8");
const blocks = (language: string) =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map((match) => match[1] as string);

interface Message {
  headers: Record<string, string>;
  body: string | undefined;
}

interface Exchange {
  method: string;
  path: string;
  request: Message;
  status: number;
  answer: Message;
}

function parseExchange(block: string): Exchange {
  const [, head = "", tail = ""] = /^([\s\S]*?)\n\n(?=\d{3}\n)([\s\S]*)$/.exec(block) ?? [];
  const [, method = "", path = "", request = ""] = /^(\S+) (\S+)\n?([\s\S]*)$/.exec(head) ?? [];
  const [, status = "", answer = ""] = /^(\d{3})\n([\s\S]*)$/.exec(tail) ?? [];
  return { method, path, request: parseMessage(request), status: Number(status), answer: parseMessage(answer) };
}

function parseMessage(text: string): Message {
  const [head = "", ...rest] = text.replace(/\n$/, "").split("\n\n");
  const lines = head.split("\n").filter((line) => line !== "");
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/).slice(0, 2) as [string, string]));
  return { headers, body: rest.length === 0 ? undefined : rest.join("\n\n") };
}

const fill = (text: string, known: ReadonlyMap<string, string>) =>
  text.replace(/\{([a-z]+)\}/g, (whole, name: string) => known.get(name) ?? whole);

/** Stores the values of the names that are new in `expected`. */
function learn(expected: string, actual: string, known: Map<string, string>): void {
  const names: string[] = [];
  const pattern = fill(expected, known)
    .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    .replace(/\\\{([a-z]+)\\\}/g, (_whole, name: string) => {
      names.push(name);
      return names.indexOf(name) === names.length - 1 ? `(?<${name}>[^"]+)` : `\\k<${name}>`;
    });
  const found = new RegExp(`^${pattern}$`).exec(actual);
  for (const name of new Set(names)) if (found?.groups?.[name] !== undefined) known.set(name, found.groups[name]);
}

function compare(answer: Answer, expected: Exchange, known: Map<string, string>): void {
  const body = expected.answer.body ?? "";
  learn(body, answer.text, known);
  expect({ status: answer.status, text: answer.text }).toEqual({ status: expected.status, text: fill(body, known) });
  expect(answer.headers).toMatchObject(expected.answer.headers);
  if (expected.answer.headers["content-type"] === undefined) expect(answer.headers["content-type"]).toBeUndefined();
}

it("[W-GEN-01] the README of the protocol shows real requests and responses", async () => {
  const { send } = await startGraphServer();
  const known = new Map<string, string>();
  const exchanges = blocks("http").map(parseExchange);
  expect(exchanges.length).toBeGreaterThan(15);
  for (const exchange of exchanges) {
    const { method, path, request } = exchange;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, fill(value, known)]));
    const answer = await send(method, fill(path, known), {
      headers,
      ...(request.body === undefined ? {} : { body: fill(request.body, known) }),
    });
    compare(answer, exchange, known);
  }
});

it("the definition file of the README is read without a warning", () => {
  const [text] = blocks("yaml");
  const { graph, warnings } = parseFile(text as string, { file: "pipeline.yml" });
  expect(warnings).toEqual([]);
  expect(graph.jobs.map((job) => job.id)).toEqual(["test", "deploy"]);
});
