// The responses to commands that come too late: the run or the task has changed since it was read for the command.

import { describe, expect, it } from "vitest";
import { newRun } from "../../../engine/run/new-run.ts";
import type { Run } from "../../../engine/run/run.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { Refused } from "./replies.ts";
import { Workflows, type WorkflowsDeps } from "./workflows.ts";

const begun: Run = newRun({ id: "run", workflow: "w", definitionId: "d", input: "{}", rootId: null }, 0, null);

/** A run that is `begun` each time it is read, and has this state when a command arrives. */
function workflowsOf(after: Run): Workflows {
  const runs = { run: async () => begun, tell: async () => after };
  const renderer = { viewOf: async () => ({ dialect: "conductor", steps: [{ task: { taskReferenceName: "two" } }] }) };
  return new Workflows({ runs, renderer, reader: { heads: async () => [] } } as unknown as WorkflowsDeps);
}

const refusal = (error: Refused) => ({ status: error.reply.status, message: error.message });

describe("a command that arrives too late", () => {
  it("is refused when the workflow to terminate has just completed", async () => {
    const late = workflowsOf({ ...begun, state: "succeeded" }).terminateRun("run", "enough");
    expect(await late.catch(refusal)).toEqual({ status: 409, message: "Cannot terminate a COMPLETED workflow." });
  });

  it("is carried out when the workflow to terminate is running", async () => {
    expect(await workflowsOf({ ...begun, state: "cancelled" }).terminateRun("run", "enough")).toBeUndefined();
  });

  it("is refused when the task to skip has just begun", async () => {
    const request = { params: { workflow: "run", reference: "two" }, text: "" } as unknown as HttpRequest;
    const late = await workflowsOf(begun).skip(request).catch(refusal);
    expect(late).toEqual({ status: 409, message: "The task referenced two has already been processed, cannot be skipped" });
    expect(await workflowsOf({ ...begun, skips: '{"nodes":[0],"reached":[]}' }).skip(request)).toMatchObject({ status: 200 });
  });
});
