// Records the messages between the real programs: over gRPC with a proxy that knows the SDK's own schema, over HTTP literally. Ids and times
// are replaced by fixed values, so that each recording is the same.
import { fileURLToPath } from "node:url";
import { exchange } from "../src/exchange.ts";
import { openRecordingProxy } from "../src/recording-proxy.ts";
import type { Stage } from "../src/stage.ts";
import { until } from "../src/until.ts";
import { pythonWithSdk, type Release, releases } from "./fetch.ts";
import { flowOf, type Operator, operatorOf } from "./operator.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { pythonGrpcWorker, pythonHttpWorker } from "./workers.ts";

/**
 * One step after the other, so that the order of messages does not depend on chance. When a release shuffles keys, objects have only one key.
 */
async function session(operator: Operator): Promise<void> {
  const once = (component: string, input: unknown, more: Record<string, unknown> = {}) => operator.run(flowOf(component, more), [input]);
  await once("/python/echo", { list: [1, -1.5, null, true, "ü", {}, []] });
  await once("/python/kinds", { whole: 42 });
  await once("/python/fail", { kind: "value", message: "it broke" });
  await once("/python/nosuch", {});
  await once("/python/core/some/where", { v: 1 });
  await once("/python/blob", { data: { k: [1, 2, 3] } });
  const flow_id = await operator.store(flowOf("/python/echo"));
  await once("/python/sub", { flow_id, inputs: [{ x: 1 }] });
}

export interface RecordedMessage {
  session: string;
  method: string;
  direction: "request" | "response";
  message: unknown;
  hex: string;
}

/** A fixed port, because messages contain the address. It is always free, because the network is private. */
const PORTS: Record<Release, number> = { "0.9": 17_090, "0.11": 17_110, "0.12": 17_120, "0.13": 17_130 };

export async function recordGrpc(stage: Stage, release: Release): Promise<RecordedMessage[]> {
  const port = PORTS[release] + 1;
  const recorder = `127.0.0.1:${port}`;
  const env = { STEPFLOW_ORCHESTRATOR_URL: recorder };
  const orchestrator = await startOrchestrator(stage, release, { port: PORTS[release], env });
  const program = fileURLToPath(new URL("./programs/recorder.py", import.meta.url));
  // The schema of 0.13 also reads messages of 0.12; only some names differ, the numbers are the same.
  const recording = stage.start(pythonWithSdk("0.13"), [program, orchestrator.address, String(port)], { name: "recorder" });
  await recording.printed(/^recording$/m);
  pythonGrpcWorker(stage, release, recorder);
  const operator = operatorOf(orchestrator.url, release);
  await operator.knows("echo");
  await session(operator);
  const lines = recording.output().split("\n").slice(0, -1);
  const messages = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Omit<RecordedMessage, "session">);
  const name = `stepflow-orchestrator ${releases[release].orchestrator}, stepflow-py ${releases[release].sdk}`;
  return withoutRepeats(messages.map((message) => ({ session: name, ...message })));
}

/** Grouped by method, because a response may overtake another call. Each message is kept once. */
function withoutRepeats(messages: readonly RecordedMessage[]): RecordedMessage[] {
  const distinct = [...new Map(messages.map((one) => [JSON.stringify(one), one])).values()];
  const key = ({ method, direction }: RecordedMessage): string => `${method} ${direction}`;
  return distinct.sort((a, b) => key(a).localeCompare(key(b)));
}

export interface RecordedExchange {
  request: { method: string; path: string; headers: Record<string, string>; body: unknown };
  /** The body as JSON, or the events of a stream. */
  answer: { status: number; headers: Record<string, string>; body: unknown };
}

/** Headers that belong to the protocol rather than to a library, a connection or a date. */
const KEPT_HEADERS = ["content-type", "accept", "stepflow-instance-id", "cache-control"];

export async function recordHttp(stage: Stage, release: Release): Promise<RecordedExchange[]> {
  const worker = await pythonHttpWorker(stage, release);
  const proxy = await openRecordingProxy(stage, worker.url);
  const plugin = { type: "stepflow", url: proxy.url };
  const orchestrator = await startOrchestrator(stage, release, { port: PORTS[release], plugin });
  const operator = operatorOf(orchestrator.url, release);
  await operator.components();
  await session(operator);
  await exchange(proxy.url, { method: "GET", path: "/health" });
  // A stream continues for a moment after the event that its caller waited for.
  await until("every exchange to be over", () => (proxy.unfinished() === 0 ? true : undefined));
  const mask = createMask();
  const inOrder = [...proxy.exchanges].sort((a, b) => a.place - b.place);
  return inOrder.map(({ request, answer }) => ({
    request: { method: request.method, path: request.path, headers: pick(request.headers, mask), body: bodyOf(mask(request.body)) },
    answer: { status: answer.status, headers: pick(answer.headers, mask), body: bodyOf(mask(answer.body)) },
  }));
}

function pick(headers: object, mask: (text: string) => string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (KEPT_HEADERS.includes(name) ? [[name, mask(String(value))]] : [])),
  );
}

/** JSON is parsed, an event stream becomes a list of its events, and anything else stays text. */
function bodyOf(text: string): unknown {
  if (text.startsWith("data: ")) return text.split("\n\n").slice(0, -1);
  return text === "" ? "" : JSON.parse(text);
}

/** Replaces values that differ each time by fixed values of the same form. The same id always gets the same replacement. */
function createMask(): (text: string) => string {
  const ids = new Map<string, string>();
  const known = (id: string, make: (n: number) => string): string => {
    const replacement = ids.get(id) ?? make(ids.size + 1);
    ids.set(id, replacement);
    return replacement;
  };
  return (text) =>
    text
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) =>
        known(id, (n) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`),
      )
      .replace(/(?<![0-9a-f])(?:[0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-f])/g, (id) => "0123456789abcdef".repeat(id.length / 16))
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g, (_time, _part, zone: string) => `2026-11-15T00:00:00.123${zone}`);
}
