import { describe, expect, it } from "vitest";
import { realGroups, realMethods } from "../../test/support/admin.ts";
import { type Action, actions, calledWorker, callerWith, everyone, stranger } from "./actions.ts";

const all = Object.keys(actions) as Action[];

describe("what a caller may do", () => {
  it("is everything for an operator, and when no token is required", () => {
    expect(all.filter((action) => !callerWith("o", ["operator"]).may(action))).toEqual([]);
    expect(all.filter((action) => !everyone.may(action))).toEqual([]);
  });

  it("is what the table allows for the other scopes, separately and together", () => {
    for (const scopes of [["worker"], ["read"], ["worker", "read"]] as const) {
      const caller = callerWith("c", scopes);
      for (const action of all) {
        const { who } = actions[action];
        expect([action, caller.may(action)]).toEqual([action, who === "anyone" || (scopes as readonly string[]).includes(who)]);
      }
    }
    expect(all.filter((action) => calledWorker.may(action))).toEqual(all.filter((action) => callerWith("w", ["worker"]).may(action)));
  });

  it("is almost nothing without a token", () => {
    expect(all.filter((action) => stranger.may(action))).toEqual(["server.greet", "server.health", "server.version", "token.check"]);
  });
});

describe("the table of actions", () => {
  it("has no action that no route uses", async () => {
    const used = new Set([...(await realGroups()).flatMap(({ routes }) => routes), ...(await realMethods())].map(({ action }) => action));
    // No route names this action: the routes of the bus find it by the name of the topic.
    const byTopic: Action = "bus.lead";
    expect(all.filter((action) => !used.has(action))).toEqual([byTopic]);
  });

  it("allows no change with a token that only allows reading, or without a token", () => {
    expect(all.filter((action) => !actions[action].reads && ["read", "anyone"].includes(actions[action].who))).toEqual([]);
  });

  it("has the same action for routes that do the same in different protocols", async () => {
    const routes = new Map((await realGroups()).flatMap((group) => group.routes).map((one) => [`${one.method} ${one.path}`, one.action]));
    const methods = new Map((await realMethods()).map(({ path, action }) => [path.replace("/stepflow.v1.", ""), action]));
    const twins: [method: string, ...routes: string[]][] = [
      [
        "FlowsService/StoreFlow",
        "POST /api/v1/flows",
        "POST /api/metadata/workflow",
        "POST /api/workflows",
        "POST /api/longshore/v1/definitions",
      ],
      ["FlowsService/GetFlow", "GET /api/v1/flows/:flow", "GET /api/metadata/workflow/:name", "GET /api/longshore/v1/definitions/:name"],
      ["FlowsService/DeleteFlow", "DELETE /api/v1/flows/:flow", "DELETE /api/metadata/workflow/:name/:version"],
      ["FlowsService/GetFlowVariables", "GET /api/v1/flows/:flow/variables"],
      ["RunsService/CreateRun", "POST /api/v1/runs", "POST /api/workflow", "POST /flowkit/v1/tasks", "POST /api/longshore/v1/runs"],
      ["RunsService/ListRuns", "GET /api/v1/runs", "GET /api/workflow/search", "GET /flowkit/v1/tasks", "GET /api/longshore/v1/runs"],
      ["RunsService/GetRun", "GET /api/v1/runs/:run", "GET /api/workflow/:workflow", "GET /api/longshore/v1/runs/:id"],
      ["RunsService/DeleteRun", "DELETE /api/v1/runs/:run", "DELETE /api/workflow/:workflow/remove"],
      ["RunsService/GetRunItems", "GET /api/v1/runs/:run/items"],
      ["RunsService/GetRunFlow", "GET /api/v1/runs/:run/flow"],
      ["RunsService/GetRunSteps", "GET /api/v1/runs/:run/steps", "GET /api/longshore/v1/runs/:id/steps"],
      ["RunsService/GetStepDetail", "GET /api/v1/runs/:run/steps/:step"],
      ["RunsService/GetRunEvents", "GET /api/v1/runs/:run/events", "GET /api/longshore/v1/events"],
      ["RunsService/CancelRun", "POST /api/v1/runs/:run/cancel", "DELETE /api/workflow/:workflow", "POST /flowkit/v1/tasks/:task/cancel"],
      ["ComponentsService/ListRegisteredComponents", "GET /api/v1/components"],
      ["HealthService/HealthCheck", "GET /api/v1/health", "GET /api/health", "GET /health"],
      ["BlobService/PutBlob", "POST /api/v1/blobs", "PUT /api/longshore/v1/blobs/:hash"],
      ["BlobService/GetBlob", "GET /api/v1/blobs/:blob", "GET /api/longshore/v1/blobs/:hash"],
      ["TasksService/PullTasks", "POST /api/jobs/claim", "GET /api/tasks/poll/:type", "POST /api/tasks/poll/batch/:type"],
      ["OrchestratorService/CompleteTask", "POST /api/jobs/:lease/complete", "POST /api/tasks"],
      ["OrchestratorService/TaskHeartbeat", "POST /api/jobs/:lease/heartbeat"],
    ];
    for (const [method, ...others] of twins) {
      expect([method, methods.get(method)]).not.toEqual([method, undefined]);
      for (const route of others) expect([route, routes.get(route)]).toEqual([route, methods.get(method)]);
    }
    // The remaining methods exist in one protocol only: the worker's own calls on behalf of a task.
    const alone = [...methods.keys()].filter((method) => !twins.some(([twin]) => twin === method));
    expect(alone.sort()).toEqual(["OrchestratorService/GetRun", "OrchestratorService/SubmitRun", "TasksService/GetOrchestratorForRun"]);
  });
});
