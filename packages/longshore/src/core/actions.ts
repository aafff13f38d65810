// All actions that a caller can request, and the token scopes that allow them: one table for every protocol. Each route, gRPC method and
// JSON-RPC call names its action, and the access check looks the action up here. So two routes to the same code have the same rule.

/** The scopes of a token. `operator` allows every action. */
export type TokenScope = "worker" | "operator" | "read";

interface Rule {
  /** The scope that the action needs. `anyone` needs no token. `operator` is always allowed. */
  readonly who: TokenScope | "anyone";
  /** A text for people that completes "may". */
  readonly what: string;
  /** True for an action that only reads: opening it in a browser changes nothing. */
  readonly reads?: true;
  /** True where a worker may do this only on behalf of a task that it holds. */
  readonly bound?: true;
  /** The content of a request that may be large, as a word. Without it, large requests are refused. */
  readonly carries?: "payload" | "definition";
  /** True for an order: it is noted in the audit, with its caller. */
  readonly order?: true;
  /** True for a request that the server answers even at its limit of concurrent requests. */
  readonly vital?: true;
}

const table = {
  "server.greet": { who: "anyone", what: "see the page at `/` and the files of the dashboard, which hold no data", reads: true },
  "server.health": { who: "anyone", what: "learn whether the server can take work", reads: true, vital: true },
  "server.version": { who: "anyone", what: "learn the server's version", reads: true },
  "token.check": { who: "anyone", what: "show a token and learn whether the server knows it", reads: true },

  "server.describe": { who: "read", what: "read the description of the HTTP API", reads: true },
  "server.inspect": { who: "read", what: "read the server's version, sizes, retention and limits", reads: true },
  "server.measure": { who: "read", what: "read metrics", reads: true, vital: true },
  "setting.read": { who: "read", what: "read settings of the server's environment and the names of its secrets", reads: true },
  "definition.read": { who: "read", what: "read workflows, flows and schemas", reads: true },
  "definition.check": { who: "read", what: "check a workflow without storing it", reads: true, carries: "definition" },
  "component.read": { who: "read", what: "list components of flows", reads: true },
  "run.read": { who: "read", what: "read runs, their steps, results, parts and events", reads: true },
  "schedule.read": { who: "read", what: "read schedules and compute their times", reads: true },
  "task.read": { who: "read", what: "list and read tasks", reads: true },
  "blob.show": { who: "read", what: "read blobs that a run refers to", reads: true },
  "log.read": { who: "read", what: "read logs", reads: true },
  "queue.read": { who: "read", what: "read how many tasks wait", reads: true },
  "worker.read": { who: "read", what: "list workers", reads: true },
  "audit.read": { who: "read", what: "read who ordered what", reads: true },
  "node.read": { who: "read", what: "list the servers that share the data", reads: true },

  "worker.sign": { who: "worker", what: "register as a worker, keep its state and send heartbeats" },
  "task.claim": { who: "worker", what: "take tasks" },
  "task.look": { who: "worker", what: "look at one task by its id, and whether it is cancelled", reads: true },
  "task.report": { who: "worker", what: "renew, complete and fail tasks", carries: "payload" },
  "task.signal": { who: "worker", what: "report on a waiting step by its name", order: true, carries: "payload" },
  "log.write": { who: "worker", what: "add to the log of a task", carries: "payload" },
  "part.write": { who: "worker", what: "store what a task produces before its end", carries: "payload" },
  "part.read": { who: "worker", what: "read what other tasks of its run produced", reads: true, bound: true },
  "blob.write": { who: "worker", what: "store blobs", carries: "payload" },
  "blob.read": { who: "worker", what: "read blobs by their hash", reads: true },
  "bus.publish": { who: "worker", what: "send on the bus what workers send: announcements, status, replies", carries: "payload" },
  "bus.take": { who: "worker", what: "receive on the bus what workers receive: commands, queries, signals" },
  "task-definition.read": { who: "worker", what: "read task definitions", reads: true },
  "task-definition.write": { who: "worker", what: "store task definitions and schemas", order: true, carries: "definition" },
  "run.locate": { who: "worker", what: "find the server of a run", reads: true },
  "sub-run.start": { who: "worker", what: "start runs of stored flows", bound: true, carries: "payload" },
  "sub-run.read": { who: "worker", what: "read runs of the same family", reads: true, bound: true },

  "secret.read": { who: "operator", what: "read the value of a secret of the server's environment", reads: true },
  "definition.write": { who: "operator", what: "store workflows and flows", order: true, carries: "definition" },
  "definition.remove": { who: "operator", what: "remove workflows, flows, schemas and task definitions", order: true },
  "run.start": { who: "operator", what: "start runs of anything, and single tasks", carries: "payload" },
  "run.signal": { who: "operator", what: "send signals to runs", order: true, carries: "payload" },
  "run.steer": { who: "operator", what: "cancel, pause, retry, rerun runs and skip steps", order: true, vital: true, carries: "payload" },
  "schedule.write": { who: "operator", what: "make, change and remove schedules", order: true, carries: "payload" },
  "schedule.steer": { who: "operator", what: "pause, resume, run and backfill schedules", order: true },
  "run.remove": { who: "operator", what: "remove runs", order: true },
  "bus.lead": { who: "operator", what: "send and receive everything on the bus, as a coordinator does" },
  "queue.steer": { who: "operator", what: "pause and resume queues, change limits, and requeue tasks", order: true },
  "worker.steer": { who: "operator", what: "cordon workers, so that they get no more tasks", order: true },
} as const satisfies { readonly [action: string]: Rule };

export type Action = keyof typeof table;

export const actions: Readonly<Record<Action, Rule>> = table;

/** The sender of a request, as the access check sees it. */
export interface Caller {
  /** The name of the token; undefined for a request without a token. */
  readonly name: string | undefined;
  may(action: Action): boolean;
}

/** Every caller of a server without tokens. */
export const everyone: Caller = { name: undefined, may: () => true };

/** A caller without a token, where the server requires one. */
export const stranger: Caller = { name: undefined, may: (action) => actions[action].who === "anyone" };

/** A worker that the server calls. It shows no token, even where the server requires tokens. */
export const calledWorker: Caller = callerWith(undefined, ["worker"]);

/** Computes the allowed actions once, so that each request costs one lookup. */
export function callerWith(name: string | undefined, scopes: readonly TokenScope[]): Caller {
  const allowed = new Set((Object.keys(actions) as Action[]).filter((action) => allows(scopes, actions[action].who)));
  return { name, may: (action) => allowed.has(action) };
}

function allows(scopes: readonly TokenScope[], who: Rule["who"]): boolean {
  return who === "anyone" || scopes.includes("operator") || scopes.includes(who);
}
