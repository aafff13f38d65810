// The model board behind real sockets, with the paths that the fault tests use.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Job } from "./api.ts";
import { type Defect, type Journal, type ModelBoard, type ModelTask, modelBoard } from "./model-board.ts";

interface ModelServer {
  url: string;
  /** How often something was handed out or reported on. When this number does not change, the work is done or stuck. */
  moves(): number;
  close(): Promise<void>;
}

export async function startModelServer(defect: Defect, port = 0, journal?: Journal): Promise<ModelServer> {
  const board = modelBoard(defect, journal);
  let moves = 0;
  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => {
        const [status, said] = answer(board, request.method ?? "", request.url ?? "", body);
        const isMove = request.url?.startsWith("/api/jobs/") && said !== null && !request.url.endsWith("/heartbeat");
        if (isMove) moves++;
        response.writeHead(status, said === undefined ? {} : { "content-type": "application/json" });
        response.end(said === undefined ? undefined : JSON.stringify(said));
      },
      // The client disconnected in the middle of its request.
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    moves: () => moves,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

type Reply = [status: number, said?: object | null];

function answer(board: ModelBoard, method: string, path: string, body: Record<string, unknown>): Reply {
  const [, , ...parts] = (path.split("?")[0] ?? "").split("/");
  const [head = "", id = "", verb = ""] = parts[0] === "longshore" ? parts.slice(2) : parts;
  if (head === "workflows") return [201, { id: board.create(body.jobs as Job[]) }];
  if (head === "runs" && id === "" && method === "GET") return [200, { items: board.list().map((runId) => ({ id: runId })), next: null }];
  if (head === "runs" && id === "") {
    const runId = board.start(body.workflow as string, body.key as string);
    return runId ? [201, { id: runId }] : [404];
  }
  if (head === "runs" && verb === "cancel") return [board.cancel(id) ? 202 : 404];
  if (head === "runs" && verb === "logs") return [200, { items: board.lines(id).map((data) => ({ data })), next: null }];
  if (head === "runs" && verb === "tasks") return [200, { items: board.tasks(id).map(shownTask) }];
  if (head === "runs") {
    const state = board.state(id);
    return state ? [200, { id, state }] : [404];
  }
  if (head === "jobs" && id === "claim") return [200, claimAnswer(board, body)];
  return [reportTo(board, id, verb, body) ? 200 : 409];
}

function reportTo(board: ModelBoard, leaseId: string, verb: string, body: Record<string, unknown>): boolean {
  if (verb === "heartbeat") return board.extend(leaseId);
  if (verb === "logs") return board.log(leaseId, (body.chunks as { data: string }[])[0]?.data ?? "");
  if (verb === "complete") return board.complete(leaseId, body.outputs as Record<string, string>);
  return board.fail(leaseId);
}

function shownTask({ id, runId, step, state, attempt, failures, output }: ModelTask): object {
  return { id, runId, step, state, attempt, failures, output };
}

function claimAnswer(board: ModelBoard, body: Record<string, unknown>): object | null {
  const task = board.claim((body.lease_ttl_secs as number) * 1000);
  if (!task?.lease) return null;
  const { lease, step, workflow, runId, attempt } = task;
  return {
    job: { job_id: step, workflow_id: workflow, run_id: runId, attempt, upstream_outputs: board.upstream(task) },
    lease: { lease_id: lease.id, ttl_secs: lease.ttlMs / 1000, granted_at_ms: lease.endsAt - lease.ttlMs, expires_at_ms: lease.endsAt },
  };
}
