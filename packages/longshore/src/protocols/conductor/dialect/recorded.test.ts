// Our server accepts and refuses the same definitions as the real server: tests every exchange of the recordings that registers a definition.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { lookupsOf, snapshot } from "./snapshot.ts";
import { parseTaskDef, parseTaskDefs } from "./task-def.ts";
import type { Violation } from "./violation.ts";
import { parseWorkflowDef } from "./workflow-def.ts";

interface Exchange {
  step: string;
  request: { method: string; path: string; body?: Json };
  answer: { status: number; body: Json };
}

function exchangesOf(chapter: string): Exchange[] {
  const file = new URL(`../../../../test/fixtures/conductor/${chapter}.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { exchanges: Exchange[] }).exchanges;
}

/** What we refuse although the real server accepts it, and why. */
const refusedByUs: { readonly [step: string]: string } = {
  "JOIN on nobody": "it would wait forever",
  "SUB_WORKFLOW without a name": "there is nothing that it could start",
};

function violationsOf({ request: { method, path, body } }: Exchange): readonly Violation[] | null {
  const at = path.split("?")[0];
  if (at === "/api/metadata/taskdefs")
    return faults(method === "POST" ? parseTaskDefs(body, "registerTaskDef.arg0") : parseTaskDef(body, "updateTaskDef.arg0"));
  if (at === "/api/metadata/workflow" && method === "POST") return faults(parseWorkflowDef(body, "registerWorkflowDef.arg0"));
  return at === "/api/metadata/workflow/validate" ? faults(parseWorkflowDef(body, "validateWorkflowDef.arg0")) : null;
}

function faults(checked: object): readonly Violation[] {
  return "violations" in checked ? (checked.violations as Violation[]) : [];
}

const sorted = (list: readonly Violation[]) => [...list].sort((a, b) => (a.path + a.message < b.path + b.message ? -1 : 1));

describe.each(["task-definitions", "workflow-definitions"])("the recorded chapter %s", (chapter) => {
  const sent = exchangesOf(chapter).filter(({ request }) => request.body !== undefined && typeof request.body !== "string");

  it("gets the same validation errors", () => {
    let compared = 0;
    for (const exchange of sent) {
      const { step, answer } = exchange;
      const found = violationsOf(exchange);
      const told = isObject(answer.body) ? (answer.body.validationErrors as unknown as Violation[] | undefined) : undefined;
      if (found === null || (answer.status !== 200 && told === undefined) || refusedByUs[step] !== undefined) continue;
      // Unsupported operators are refused with this reason, also when they have other mistakes.
      if (found.some(({ message }) => message.includes("is not supported by this server"))) continue;
      expect({ step, errors: sorted(found) }).toEqual({ step, errors: sorted(told ?? []) });
      compared++;
    }
    expect(compared).toBeGreaterThan(15);
  });

  it("refuses what the real server cannot read", () => {
    const unread = ({ answer: { body } }: Exchange) => isObject(body) && String(body.message).startsWith("JSON parse error");
    for (const exchange of sent.filter(unread)) {
      const found = violationsOf(exchange);
      if (found !== null) expect({ step: exchange.step, count: found.length }).not.toMatchObject({ count: 0 });
    }
  });
});

describe("definitions that were returned", () => {
  const times = { createTime: 0, updateTime: 0 };

  it("are the same as those that were sent, with the same defaults", () => {
    const flows = exchangesOf("workflow-definitions");
    const posted = (name: string) =>
      flows.find(({ request }) => isObject(request.body) && request.body.name === name && request.path === "/api/metadata/workflow");
    for (const { request, answer } of flows) {
      const name = /^\/api\/metadata\/workflow\/(full_flow|later_flow)$/.exec(request.path)?.[1];
      if (name === undefined || request.method !== "GET") continue;
      const read = parseWorkflowDef(posted(name)?.request.body, "p") as { value: object };
      expect({ ...read.value, ...times }).toEqual({ ...(answer.body as JsonObject), ...times });
    }
    const tasks = exchangesOf("task-definitions");
    const full = tasks.find(({ step }) => step === "every field")?.request.body as Json[];
    const back = tasks.find(({ step }) => step === "every field comes back")?.answer.body as JsonObject;
    const read = parseTaskDef(full[0], "p") as { value: object };
    expect({ ...read.value, ...times, createdBy: "" }).toEqual({ ...back, ...times });
  });

  it("in a run include the definitions of their tasks, as on the real server", () => {
    const chapters = ["operator-switch", "operator-fork-join", "operator-terminate", "operator-set-variable", "operator-wait-human-noop"];
    let compared = 0;
    for (const chapter of chapters) {
      const exchanges = exchangesOf(chapter);
      const taskDefs = exchanges.flatMap(({ request }) => (Array.isArray(request.body) ? (request.body as unknown[]) : []));
      const known = new Map(
        taskDefs.map((source) => (parseTaskDef(source, "p") as { value: { name: string } }).value).map((one) => [one.name, one]),
      );
      for (const { request } of exchanges.filter((one) => one.request.path === "/api/metadata/workflow")) {
        const { value } = parseWorkflowDef(request.body, "p") as { value: Parameters<typeof snapshot>[0] };
        const run = exchanges.find(
          ({ answer }) => isObject(answer.body) && isObject(answer.body.workflowDefinition) && answer.body.workflowName === value.name,
        );
        if (run === undefined) continue;
        expect(lookupsOf(value).taskDefs.length).toBeGreaterThan(0);
        const kept = snapshot(value, known as unknown as Parameters<typeof snapshot>[1]);
        const real = (run.answer.body as { workflowDefinition: JsonObject }).workflowDefinition;
        expect(withoutAudit(kept.tasks as unknown as Json)).toEqual(withoutAudit(real.tasks as Json));
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(10);
  });
});

/** Times and the name of the user who registered it are added by the server. */
function withoutAudit(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutAudit);
  if (!isObject(value)) return value;
  const kept = Object.entries(value as JsonObject).filter(([key]) => !["createTime", "updateTime", "createdBy", "updatedBy"].includes(key));
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutAudit(part)]));
}
