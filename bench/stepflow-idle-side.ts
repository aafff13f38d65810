// Many workers that wait: each has its own connection and its own PullTasks stream, and does nothing.
import { type ClientHttp2Session, connect } from "node:http2";
import { answerApart, cpuMicroseconds, residentBytes } from "./processes.ts";

export interface IdleRequest {
  readonly url: string;
  readonly serverPid: number;
  readonly streams: number;
  readonly seconds: number;
}

export interface IdleAnswer {
  /** The cost of one more stream. */
  readonly bytesPerStream: number;
  readonly residentMib: number;
  readonly cpuMsPerSecond: number;
}

/** Opened a few at a time: a backlog that overflows would lose some. */
const AT_ONCE = 50;
/** Long enough for the effects of an opening stream to end: an unanswered discovery of components takes 5 s. */
const SETTLE_MS = 8_000;

/** PullTasksRequest with a queue and a worker's id, in a frame of gRPC. */
function pullRequest(worker: string): Buffer {
  const text = (field: number, value: string): Buffer => Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), Buffer.from(value)]);
  const message = Buffer.concat([text(1, "python"), text(2, worker)]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function openStream(url: string, worker: string): Promise<ClientHttp2Session> {
  const session = connect(url);
  const stream = session.request({
    ":method": "POST",
    ":path": "/stepflow.v1.TasksService/PullTasks",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(pullRequest(worker));
  stream.resume();
  await new Promise<void>((resolve, reject) => {
    stream.once("response", () => resolve());
    stream.once("error", reject);
    session.once("error", reject);
  });
  return session;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

await answerApart<IdleRequest, IdleAnswer>(async ({ url, serverPid, streams, seconds }) => {
  // The first one includes what any stream needs once.
  const sessions = [await openStream(url, "w0")];
  await pause(SETTLE_MS);
  const before = residentBytes(serverPid);
  while (sessions.length < streams) {
    const next = Array.from({ length: Math.min(AT_ONCE, streams - sessions.length) }, (_none, index) =>
      openStream(url, `w${sessions.length + index}`),
    );
    sessions.push(...(await Promise.all(next)));
  }
  await pause(SETTLE_MS);
  const cpuBefore = cpuMicroseconds(serverPid);
  await pause(seconds * 1000);
  const cpu = cpuMicroseconds(serverPid) - cpuBefore;
  const after = residentBytes(serverPid);
  for (const session of sessions) session.destroy();
  return { bytesPerStream: (after - before) / (streams - 1), residentMib: after / 2 ** 20, cpuMsPerSecond: cpu / 1000 / seconds };
});
