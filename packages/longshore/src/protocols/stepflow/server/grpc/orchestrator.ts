// OrchestratorService: the reports of workers of every queue, and the runs that their components start.

import type { GrpcMethod } from "../../../../net/grpc/service.ts";
import { unary } from "../../../../net/grpc/service.ts";
import { ResultOrder } from "../../wire/messages.ts";
import { OrchestratorService } from "../../wire/services.ts";
import { withMappedErrors } from "../api/error-mapping.ts";
import { orchestratorStatus, type WorkerRuns } from "../api/worker-runs.ts";
import type { Reports } from "../queue/reports.ts";
import { enumIn, invalid, runIdIn } from "../refuse.ts";

export function orchestratorMethods({ reports }: { readonly reports: Reports }): GrpcMethod[] {
  return [
    unary(OrchestratorService.TaskHeartbeat, "task.report", (request, { caller }) => reports.heartbeat(request, caller)),
    unary(OrchestratorService.CompleteTask, "task.report", async (request, { id }) => {
      await reports.complete(request, id);
      return {};
    }),
  ];
}

/** Runs that a worker's component starts. Each belongs to the run of the component's task. */
export function workerRunMethods(runs: WorkerRuns): GrpcMethod[] {
  return [
    // Not async: see RunService.submit.
    unary(OrchestratorService.SubmitRun, "sub-run.start", ({ runRequest, subflowKey, rootRunId }, call) => {
      if (runRequest === undefined) throw invalid("run_request", "is missing, expected the flow and its inputs");
      const { input, wait, timeoutSecs, ...request } = runRequest;
      const requester = rootRunId ? { rootRunId: runIdIn("root_run_id", rootRunId) } : undefined;
      const waiting = { wait, gone: () => call.gone, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
      const from = { caller: call.caller, ...(requester === undefined ? {} : { requester }) };
      return runs.submit({ ...request, inputs: input }, from, subflowKey || undefined, waiting).then(orchestratorStatus);
    }),
    unary(
      OrchestratorService.GetRun,
      "sub-run.read",
      async ({ runId, wait, timeoutSecs, includeResults, resultOrder, rootRunId }, call) => {
        if (rootRunId) runIdIn("root_run_id", rootRunId);
        const waiting = { wait, gone: () => call.gone, ...(timeoutSecs === undefined ? {} : { timeoutSecs }) };
        const order = includeResults ? enumIn("result_order", resultOrder, ResultOrder) || ResultOrder.BY_INDEX : undefined;
        return orchestratorStatus(await runs.get(runIdIn("run_id", runId), { caller: call.caller }, order, waiting));
      },
    ),
  ].map(withMappedErrors);
}
