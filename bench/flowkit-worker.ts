// The worker of the FlowKit benchmark. One node emits a number of batches of one size, one emits them from time to time, and one reads the
// batches of another. Each node prints what it saw as one line of JSON.
import { work } from "longshore";
import { flowkit, streamTask } from "longshore/flowkit";

const { SERVER_URL = "", BROKERS } = process.env;
/** Enough for both nodes of a stream; each is one command. */
const SLOTS = 4;

const say = (fact: object): void => void process.stdout.write(`${JSON.stringify(fact)}\n`);
const now = (): number => performance.timeOrigin + performance.now();

interface Order {
  readonly count: number;
  readonly bytes: number;
  readonly everyMs: number;
}

const orderOf = (loaded: object): Order => (loaded as { input_inline: Order }).input_inline;

const started = new Map<string, number>();
const give = streamTask("give", {
  async *iterBatches(loaded, { task_id }) {
    const { count, bytes, everyMs } = orderOf(loaded);
    const data = "d".repeat(bytes);
    started.set(task_id, now());
    for (let at = 0; at < count; at++) {
      if (everyMs > 0) await new Promise((resolve) => setTimeout(resolve, everyMs));
      yield { batch_uid: `b${at}`, payload: { data } };
    }
  },
  processBatch: ({ payload }) => ({ ...payload, at: now() }),
  finalize({ task_id }) {
    say({ task: task_id, startedAt: started.get(task_id) });
    started.delete(task_id);
    return {};
  },
});

const waits = new Map<string, number[]>();
const tap = streamTask("tap", {
  processBatch(batch, { task_id }) {
    const { meta } = batch.payload as unknown as { meta: { at: number } };
    const mine = waits.get(task_id) ?? [];
    mine.push(now() - meta.at);
    waits.set(task_id, mine);
    return {};
  },
  finalize({ task_id }) {
    say({ task: task_id, waits: waits.get(task_id) ?? [] });
    waits.delete(task_id);
    return {};
  },
});

const server = { url: SERVER_URL, hbIntervalSec: 5, leaseTtlSec: 30 };
const worker = await work({
  tasks: [give, tap],
  on: flowkit(BROKERS === undefined ? server : { ...server, brokers: BROKERS }),
  slots: SLOTS,
});
say({ ready: true });
await worker.closed;
