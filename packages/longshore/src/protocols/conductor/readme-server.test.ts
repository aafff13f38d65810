// Compares README.md, "Server", with a real server: its table lists every call, and its examples are sent in order and get the shown
// responses. A response may have more fields than the example; ids and times are those of the run.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { section, sectionsOf, unquoted } from "../../../test/support/markdown.ts";
import { exchangesIn, expectAnswer, play } from "../../../test/support/readme-exchange.ts";
import { serve } from "../../server/index.ts";
import { unservedCalls } from "./server/missing-endpoints.ts";
import { type ConductorDeps, conductorRoutes } from "./server/routes.ts";

const page = section(readFileSync(new URL("README.md", import.meta.url), "utf8"), "Server").text;
const parts = sectionsOf(page, 3);
const runIdShown = "01M7HKYXWY68BJ37GRGXBHSD33";
const secretShown = "an-example-of-a-secret";

/** Rows of "Limits", the constant behind each, and the unit of the row. */
const limits: readonly [row: string, file: string, name: string, unit: number][] = [
  ["wait of a poll", "./wire/shapes.ts", "pollTimeoutMsMax", 1],
  ["wait of a poll", "./wire/shapes.ts", "pollTimeoutMsDefault", 1],
  ["tasks in one poll", "./server/tasks.ts", "countMax", 1],
  ["output of a task", "../../core/payload-size.ts", "payloadBytesMax", 1_024],
  ["input of a workflow", "../../core/payload-size.ts", "payloadBytesMax", 1_024],
  ["an input filled in from expressions", "../../core/payload-size.ts", "payloadBytesMax", 1_024],
  ["variables of a run", "./dialect/resolve.ts", "variablesCharsMax", 1_024],
  ["a request", "./server/routes.ts", "bodyMax", 1_024 * 1_024],
  ["a request", "../../core/json/json.ts", "jsonDepthMax", 1],
  ["logs in one result", "./server/result-body.ts", "logsMax", 1],
  ["log entries in one answer", "./server/logs.ts", "entriesMax", 1],
  ["`reasonForIncompletion`", "./server/result-body.ts", "reasonCharsMax", 1],
  ["`callbackAfterSeconds`", "./server/result-body.ts", "callbackSecondsMax", 86_400],
  ["ids in a bulk request, definitions in one request", "./server/bulk.ts", "idsMax", 1],
  ["ids in a bulk request, definitions in one request", "./dialect/workflow-def.ts", "workflowsMax", 1],
  ["tasks of a definition", "./dialect/workflow-def.ts", "tasksMax", 1],
  ["tasks of a definition", "./dialect/workflow-def.ts", "nestingMax", 1],
  ["name of a task, reference or workflow", "./dialect/task-def.ts", "nameCharsMax", 1],
  ["`correlationId`, `idempotencyKey`, `createdBy`, name of a schema", "./server/request.ts", "idCharsMax", 1],
  ["`taskToDomain`", "./dialect/domains.ts", "typesMax", 1],
  ["`taskToDomain`", "../../engine/board/lane-bounds.ts", "lanesMax", 1],
  ["seconds of any timeout or delay", "./dialect/task-def.ts", "secondsMax", 1],
  ["retries of a task", "./dialect/policy.ts", "retriesMax", 1],
  ["a WAIT", "./dialect/wait.ts", "durationMsMax", 366 * 86_400_000],
  ["expressions inside each other", "./dialect/expression.ts", "nestingMax", 1],
  ["a path in an expression", "./dialect/json-path/parse.ts", "pathCharsMax", 1],
  ["a path in an expression", "./dialect/json-path/parse.ts", "deepMax", 1],
  ["`validationErrors` in one answer", "./dialect/violation.ts", "violationsMax", 1],
  ["results of a search", "./server/search.ts", "sizeMax", 1],
  ["runs that a search reads", "../../engine/run/reader.ts", "searchMax", 1],
  ["tasks that a search of tasks reads", "./server/search.ts", "tasksMax", 1],
  ["a `query`", "./server/query.ts", "queryCharsMax", 1],
  ["ids of `running`, runs of one correlation id", "./server/workflows.ts", "runningMax", 1],
  ["ids of `running`, runs of one correlation id", "./server/workflows.ts", "correlatedMax", 1],
  ["`waitForSeconds`, `timeoutMillis`", "./server/execute.ts", "waitSecondsMax", 1],
  ["`waitForSeconds`, `timeoutMillis`", "./server/reports-by-reference.ts", "signalMsMax", 1],
  ["tasks in a list of `/admin/task`", "./server/administration.ts", "pageMax", 1],
  ["tasks in a list of `/admin/task`", "./server/administration.ts", "visitedMax", 1],
  ["schedules in a list, names in one request", "./server/scheduler.ts", "sizeMax", 1],
  ["schedules in a list, names in one request", "./server/scheduler.ts", "namesMax", 1],
  ["cron expressions of one schedule", "../../engine/schedule/rules.ts", "cronsMax", 1],
  ["a file", "./server/files.ts", "fileBytesMax", 1],
  ["a file", "./server/files.ts", "textCharsMax", 1],
  ["results in one test of a workflow", "./server/test-run.ts", "mocksMax", 1],
  ["results in one test of a workflow", "./server/test-run.ts", "testMsMax", 1_000],
  ["pollers in the poll data", "./server/recent-polls.ts", "pollsMax", 1],
];

/** The value of a constant that is a product of numbers. */
function constantIn(file: string, name: string): number {
  const source = readFileSync(new URL(file, import.meta.url), "utf8");
  const written = new RegExp(`const ${name} = ([\\d_ *]+);`).exec(source)?.[1];
  if (written === undefined) throw new Error(`${file} has no constant ${name}.`);
  return written.split("*").reduce((product, factor) => product * Number(factor.replaceAll("_", "")), 1);
}

describe("the server part of README.md", () => {
  it.each(limits)("documents the limit of %s as %s has it in its %s", (row, file, name, unit) => {
    const rows = parts.find(({ title }) => title === "Limits")?.rows ?? [];
    const told = rows.find(([what]) => what === row)?.[1] ?? "";
    const numbers = [...told.matchAll(/\d[\d,]*/g)].map(([number]) => Number(number.replaceAll(",", "")));
    expect(numbers).toContain(constantIn(file, name) / unit);
  });

  it("lists every call that is served, and no other", () => {
    const deps = { runs: { startsFor: () => {} }, schedules: { renewsRuns: () => {} }, starter: {} } as unknown as ConductorDeps;
    const served = conductorRoutes(deps).routes.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    const calls = parts.find(({ title }) => title === "Calls");
    const refused = unservedCalls.map(([method, path]) => `${method} /api${path.replace(/:(\w+)/g, "{$1}")}`);
    const whole = (path: string) => (/^\/(?:api-docs|actuator)/.test(path) ? path : `/api${path}`);
    const listed = (calls?.rows ?? []).map(([method, path = ""]) => `${method} ${whole(unquoted(path))}`);
    expect([...listed, ...refused].toSorted()).toEqual(served.toSorted());
  });

  it("shows the responses of a server without tokens", async () => {
    await using server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
    let runId = runIdShown;
    const real = (text: string) => text.replaceAll(runIdShown, runId);
    const examples = parts.filter(({ title }) => title !== "Tokens").flatMap(({ text }) => exchangesIn(text));
    expect(examples.length).toBeGreaterThan(15);
    for (const example of examples) {
      const { response, text } = await play(server.url as string, example, real);
      if (example.answer === runIdShown) runId = text;
      expectAnswer(example, response, text, real);
    }
  });

  it("shows the responses of a server with tokens", async () => {
    await using server = await serve({ ephemeral: true, port: 0, tokens: [secretShown], logger: { level: "silent" } });
    const examples = exchangesIn(parts.find(({ title }) => title === "Tokens")?.text ?? "");
    expect(examples.length).toBeGreaterThan(2);
    for (const example of examples) {
      const { response, text } = await play(server.url as string, example, (same) => same);
      expectAnswer(example, response, text, (same) => same);
    }
  });
});
