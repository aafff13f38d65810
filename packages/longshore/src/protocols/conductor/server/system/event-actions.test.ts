import { expect, it } from "vitest";
import type { TaskRow } from "../../../../engine/board/task.ts";
import { attemptIdOf } from "../../dialect/ids.ts";
import { type ActionDeps, EventActions } from "./event-actions.ts";

const id = "00000000-0000-4000-8000-000000000001";

/** The action on a task that was open when the action read it, with what the board replies to the report. */
async function performed(action: "complete_task" | "fail_task", verdict: string) {
  const target = { id, attempt: 1, state: "held" };
  const handler = { name: "h", event: "conductor:a:b", active: true, actions: [{ action, [action]: { taskId: attemptIdOf(id, 1) } }] };
  const engine = {
    documents: { document: async () => ({ body: JSON.stringify(handler) }) },
    reader: { task: async () => target },
    board: { complete: async () => verdict, fail: async () => verdict },
  };
  const actions = new EventActions({ engine } as unknown as ActionDeps);
  const input = JSON.stringify({ subscriber: "h", event: "conductor:a:b", payload: {}, key: "k" });
  return actions.perform({ input } as TaskRow, new AbortController().signal);
}

it.each(["complete_task", "fail_task"] as const)("%s names the task only when the report on it was accepted", async (action) => {
  for (const verdict of ["ok", "again"])
    expect(await performed(action, verdict)).toEqual({ status: "COMPLETED", actions: [{ taskId: id }] });
  for (const verdict of ["busy", "stale", "gone", "cancel"])
    expect(await performed(action, verdict)).toMatchObject({
      actions: [{ skipped: `the report on the task ${id} was refused: ${verdict}` }],
    });
});
