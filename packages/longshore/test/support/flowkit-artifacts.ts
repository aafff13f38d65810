// Our own store of artifacts on a whole engine. The tasks are steps of a workflow in code, and a test drives their nodes.

import type { Clock } from "../../src/core/clock.ts";
import { taskIdOf } from "../../src/engine/run/run.ts";
import { PartArtifacts } from "../../src/protocols/flowkit/server/artifacts/part-artifacts.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import type { ArtifactWorld } from "../contract/flowkit-artifacts.ts";

export interface OwnWorld extends Omit<ArtifactWorld, "store"> {
  readonly engine: Engine;
  readonly store: PartArtifacts;
}

const termMs = 60_000;

export async function openOwnArtifacts({ clock, directory = null }: { clock?: Clock; directory?: string | null } = {}): Promise<OwnWorld> {
  const engine = await openEngine({ directory, ...(clock === undefined ? {} : { clock }) });
  const { board, runs, parts, documents } = engine;
  const nodes = new Map<string, readonly string[]>();
  const boardId = (taskId: string, node: string) => {
    const at = nodes.get(taskId)?.indexOf(node) ?? -1;
    return at < 0 ? undefined : taskIdOf(taskId, at);
  };
  const places = {
    async find({ task_id, node_id }: { task_id: string; node_id: string }) {
      const id = boardId(task_id, node_id);
      return id === undefined ? undefined : { taskId: id };
    },
  };
  const store = new PartArtifacts({ parts, board, documents, places, clock: engine.clock, task: async () => null });
  const holdOf = ({ taskId, nodeId, epoch: grant }: { taskId: string; nodeId: string; epoch: number }) => ({
    taskId: boardId(taskId, nodeId) as string,
    grant,
  });
  let workers = 0;
  const claim = async (taskId: string, nodeId: string) => {
    const workerId = `w-${++workers}`;
    const [task] = await board.claim({ reach: { names: [`${taskId}/${nodeId}`], labels: [] }, holder: workerId, termMs });
    if (task === undefined) throw new Error(`There is no task on the lane of ${nodeId}.`);
    return { taskId, nodeId, epoch: task.grant, workerId };
  };
  return {
    engine,
    store,
    async begin(names) {
      const id = engine.makeId(engine.clock.now());
      const steps = names.map((node) => ({ id: node, task: `${id}/${node}`, input: null, retry: { failures: 9 } }));
      const definition = await runs.define({ name: id, dialect: "code", source: JSON.stringify({ name: id, steps, output: null }) });
      nodes.set(id, names);
      await runs.begin({ id, workflow: id, definitionId: definition.id, input: "null" });
      const attempts = [];
      for (const node of names) attempts.push(await claim(id, node));
      return attempts;
    },
    async again(attempt) {
      await board.fail(holdOf(attempt), { error: "again", retryable: true, delayMs: 0 });
      return claim(attempt.taskId, attempt.nodeId);
    },
    async done(attempt, meta) {
      await store.complete(attempt, meta);
      await board.complete(holdOf(attempt), JSON.stringify(meta));
    },
    async fail(attempt) {
      await board.fail(holdOf(attempt), { error: "no", retryable: false });
    },
    async cancel(attempt) {
      await board.withdraw(holdOf(attempt), { error: "cancelled" });
    },
    async cancelTask(taskId) {
      await runs.cancel(taskId);
    },
    async close() {
      await store.close();
      await engine.close();
    },
  };
}
