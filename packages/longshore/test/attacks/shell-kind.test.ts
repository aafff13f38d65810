// The attacker can start a run and choose its input, or name tasks and components in definitions of other protocols. The target is a worker
// with `shell: true`, or any worker without labels: both pass a command's text to a shell.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";
import { work } from "../../src/work.ts";
import { temporaryFolder } from "../support/parts.ts";
import { job, startGraphServer } from "../support/workflow-graph.ts";

/** Lists inside lists, with a shell command in the innermost. */
function nested(levels: number, text: string): unknown {
  return levels === 0 ? text : [nested(levels - 1, text)];
}

describe("a worker with a shell and handlers", () => {
  for (const levels of [98, 99, 100]) {
    it(`runs no part of a run's input that is nested ${levels} levels deep`, async () => {
      const s = await startGraphServer();
      const file = join(temporaryFolder(), "taken-over");
      const seen: unknown[] = [];
      const greet = task("greet", (input: unknown) => {
        seen.push(input);
        return null;
      });
      const worker = await work({
        tasks: [greet],
        on: workflowGraph(s.url, { shell: true }),
        clock: s.clock,
        logger: false,
        signals: false,
      });
      onTestFinished(() => worker.stop());
      const input = nested(levels, `$(touch ${file})`);
      const { id } = await s.server.start(
        graph("w", (g, given) => g.step(greet, given)),
        input as never,
      );
      const { state } = await s.server.result(id);
      expect(existsSync(file)).toBe(false);
      expect({ state, seen }).toEqual({ state: "succeeded", seen: [input] });
    });
  }
});

describe("the lane that workers without labels take commands from", () => {
  const started = async () => {
    const s = await startGraphServer();
    const none = async () => expect(await s.claim()).toBeNull();
    return { ...s, none };
  };

  for (const name of ["command", "$command"]) {
    it(`is not reached by a step of a code workflow whose task is called ${name}`, async () => {
      const s = await started();
      const source = { name: "w", steps: [{ id: "a", task: name, input: "$(id)" }], output: null };
      const defined = await s.post("/api/longshore/v1/definitions", { source });
      // A name that no handler can have is refused here already.
      if (defined.status === 201) expect((await s.post("/api/longshore/v1/runs", { workflow: "w" })).status).toBe(201);
      await s.none();
    });

    it(`is not reached by a task without a run that is called ${name}`, async () => {
      const s = await started();
      // The task is refused, or stays in a lane from which no worker claims.
      void s.server.call(name, "$(id)" as never).catch(() => undefined);
      await s.none();
    });

    it(`is not reached by a Conductor task of the type ${name}`, async () => {
      const s = await started();
      const simple = { name, taskReferenceName: "a", type: "SIMPLE", inputParameters: { x: "$(id)" } };
      const dynamic = { ...simple, name: "d", type: "DYNAMIC", dynamicTaskNameParam: "t", inputParameters: { t: name, x: "$(id)" } };
      for (const first of [simple, dynamic]) {
        const definition = { name: "w", version: 1, tasks: [first], ownerEmail: "a@example.com", schemaVersion: 2 };
        const answer = await s.post("/api/workflow", { name: "w", version: 1, workflowDef: definition });
        expect(answer.status).toBe(200);
        await s.none();
      }
    });

    it(`is not reached by a Conductor domain called ${name}`, async () => {
      const s = await started();
      const tasks = [{ name: "t", taskReferenceName: "a", type: "SIMPLE" }];
      const definition = { name: "w", version: 1, tasks, ownerEmail: "a@example.com", schemaVersion: 2 };
      const taskToDomain = { "*": name };
      expect((await s.post("/api/workflow", { name: "w", version: 1, workflowDef: definition, taskToDomain })).status).toBe(200);
      await s.none();
    });

    it(`is not reached by a Stepflow component called /${name}`, async () => {
      const s = await started();
      const steps = [{ id: "a", component: `/${name}`, input: "$(id)" }];
      const flow = { schema: "https://stepflow.org/schemas/v1/flow.json", steps, output: { $step: "a" } };
      const stored = await s.post("/api/v1/flows", { flow });
      const { flowId } = JSON.parse(stored.text) as { flowId: string };
      expect(stored.status).toBeLessThan(300);
      const run = await s.post("/api/v1/runs", { flowId, input: [{}] });
      expect(run.status, run.text).toBeLessThan(300);
      await s.none();
    });

    it(`is not reached by a FlowKit node of the type ${name}`, async () => {
      const s = await started();
      const graph = { nodes: [{ node_id: "a", type: name, status: null }], edges: [] };
      // Node types consist of letters, digits and . _ -, so the second name is refused.
      expect((await s.post("/flowkit/v1/tasks", { graph })).status).toBe(name === "command" ? 201 : 400);
      await s.none();
    });
  }

  it("still gets the shell commands that definitions contain", async () => {
    const s = await started();
    await s.start(job("a", { command: "echo hello" }));
    expect((await s.take()).job).toMatchObject({ command: "echo hello", kind: "shell" });
  });
});

describe("a definition", () => {
  for (const command of [
    '{"handler":"greet","input":}',
    '{"no":"handler"}',
    "@ greet",
    `{"handler":"greet","input":${"[".repeat(200)}${"]".repeat(200)}}`,
  ]) {
    it(`is refused when a command begins like a handler call but is not one: ${command.slice(0, 30)}`, async () => {
      const s = await startGraphServer();
      const answer = await s.post("/api/workflows", { name: "n", trigger: "t", jobs: [job("a", { command })] });
      expect(answer).toMatchObject({ status: 422, text: expect.stringContaining("handler") });
    });
  }
});
