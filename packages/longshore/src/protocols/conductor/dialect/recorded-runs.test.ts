// Repeats what was recorded on the real server: the same definitions, starts and reports. Each time the recording reads a run, ours must
// match it: status, reason, output, variables, and every task's newest attempt.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type ConductorWorld, openConductor } from "../../../../test/support/conductor-world.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { TaskDef } from "./model.ts";

interface Exchange {
  step: string;
  request: { method: string; path: string; body?: Json };
  answer: { status: number; body: Json };
}

const chapters = [
  "operator-simple",
  "operator-switch",
  "operator-fork-join",
  "operator-dynamic",
  "operator-set-variable",
  "operator-sub-workflow",
  "operator-terminate",
  "operator-wait-human-noop",
];

function exchangesOf(chapter: string): Exchange[] {
  const file = new URL(`../../../../test/fixtures/conductor/${chapter}.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { exchanges: Exchange[] }).exchanges;
}

/** Ids differ from server to server. */
function masked(value: Json): Json {
  const text = JSON.stringify(value)
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "ID")
    .replace(/\b[0-9A-HJKMNP-TV-Z]{26}(-\d+-\d+|-\d+f)*(\.\d+\.\d+)?/g, "ID");
  return JSON.parse(text) as Json;
}

class Replay {
  readonly #world: ConductorWorld;
  readonly #ids = new Map<string, string>();
  compared = 0;

  constructor(world: ConductorWorld) {
    this.#world = world;
  }

  async play({ step, request, answer }: Exchange): Promise<void> {
    const { method, body } = request;
    const path = request.path.split("?")[0] as string;
    const world = this.#world;
    if (path === "/api/metadata/taskdefs") for (const one of body as Json[]) await world.task(one as unknown as TaskDef);
    else if (path === "/api/metadata/workflow") world.workflow(body as JsonObject);
    else if (path === "/api/workflow" && answer.status === 200) await this.#start(body as JsonObject, answer.body as string);
    else if (path === "/api/tasks" && answer.status === 200) await this.#report(body as JsonObject);
    const [, runId, ref, status] = /^\/api\/tasks\/([^/]+)\/([^/]+)\/([A-Z_]+)$/.exec(path) ?? [];
    if (ref !== undefined) await world.report(this.#id(runId), ref, status as string, (body as JsonObject) ?? {});
    if (path.startsWith("/api/tasks/poll/") && isObject(answer.body)) {
      if ((await world.poll(path.slice("/api/tasks/poll/".length))) === undefined) await world.clock.advance(1_000);
    }
    const run = /^\/api\/workflow\/([^/]+)(\/retry)?$/.exec(path);
    if (method === "DELETE") await world.cancel(this.#id(run?.[1]), new URLSearchParams(request.path.split("?")[1]).get("reason"));
    else if (run?.[2] !== undefined) await world.runs.retry(this.#id(run[1]));
    else if (run !== null && method === "GET" && answer.status === 200 && !request.path.includes("includeTasks=false"))
      await this.#compare(step, run[1] as string, answer.body as JsonObject);
  }

  async #start(body: JsonObject, id: string): Promise<void> {
    this.#ids.set(id, await this.#world.startNamed(body.name as string, (body.input as JsonObject) ?? {}));
  }

  async #report(body: JsonObject): Promise<void> {
    const runId = this.#id(body.workflowInstanceId as string);
    const open = (await this.#world.records(runId)).find(({ status }) => status === "IN_PROGRESS" || status === "SCHEDULED");
    await this.#world.report(runId, open?.ref ?? "", body.status as string, (body.outputData as JsonObject) ?? {});
  }

  /** A child is identified by the step that started it. */
  #id(recorded: string | undefined): string {
    const id = this.#ids.get(recorded ?? "");
    if (id === undefined) throw new Error(`The run ${recorded} is unknown.`);
    return id;
  }

  async #compare(step: string, recorded: string, body: JsonObject): Promise<void> {
    // Every wait for a time had ended when the recorder read the run again.
    if (step === "waited") await this.#world.clock.advance(1_000);
    const id = this.#id(recorded);
    const run = await this.#world.run(id);
    const ours = await this.#world.records(id);
    const newest = new Map<string, JsonObject>();
    for (const task of (body.tasks as JsonObject[] | undefined) ?? []) newest.set(task.referenceTaskName as string, task);
    for (const { ref, output } of ours) {
      const child = (newest.get(ref)?.outputData as JsonObject | undefined)?.subWorkflowId;
      if (typeof child === "string") this.#ids.set(child, (output as { subWorkflowId: string }).subWorkflowId);
    }
    expect({
      step,
      status: run.status,
      reason: masked(run.error),
      output: masked(run.output ?? {}),
      variables: JSON.parse(run.variables ?? "{}") as Json,
      tasks: Object.fromEntries(
        ours.map(({ ref, type, status, input, output, reason, retryCount }) => [
          ref,
          { type, status, input: masked(input), output: masked(output), reason: masked(reason || null), retryCount },
        ]),
      ),
    }).toEqual({
      step,
      status: body.status,
      reason: masked(body.reasonForIncompletion ?? null),
      output: masked(body.output ?? {}),
      variables: body.variables,
      tasks: Object.fromEntries(
        [...newest].map(([ref, { taskType, status, inputData, outputData, reasonForIncompletion, retryCount }]) => [
          ref,
          {
            type: taskType,
            status,
            input: masked(inputData ?? {}),
            output: masked(outputData ?? {}),
            // On a JOIN it is sometimes empty and sometimes absent.
            reason: masked(reasonForIncompletion || null),
            retryCount,
          },
        ]),
      ),
    });
    this.compared++;
  }
}

describe("recorded runs", () => {
  it.each(chapters)("of chapter %s are the same on our server", async (chapter) => {
    const replay = new Replay(await openConductor());
    for (const exchange of exchangesOf(chapter)) await replay.play(exchange);
    expect(replay.compared).toBeGreaterThan(0);
  });
});
