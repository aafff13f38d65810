// OrchestratorService: what workers of every queue report, and the runs that their components start.

import type { GrpcMethod } from "../../../grpc/service.ts";
import { unary } from "../../../grpc/service.ts";
import type { Reports } from "../queue/reports.ts";
import { OrchestratorService } from "../services.ts";

export function orchestratorMethods({ reports }: { reports: Reports }): GrpcMethod[] {
  return [
    unary(OrchestratorService.TaskHeartbeat, "worker", (request) => reports.heartbeat(request)),
    unary(OrchestratorService.CompleteTask, "worker", async (request) => {
      await reports.complete(request);
      return {};
    }),
  ];
}
