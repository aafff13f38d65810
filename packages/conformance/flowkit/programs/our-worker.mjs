// The same roles as in handlers.py, as a user of Longshore writes them. The argument has the addresses of the services, and what each role
// does.
import { setTimeout as pause } from "node:timers/promises";
import { work } from "longshore";
import { flowkit, streamTask } from "longshore/flowkit";

const { roles, slots = 1, ...options } = JSON.parse(process.argv[2]);

class Failed extends Error {
  constructor({ reason = "told_to_fail", permanent = false }) {
    super(`failed as it was told: ${reason}`);
    this.classified = [reason, permanent];
  }
}

const classifyError = (error) => error.classified ?? ["unexpected_error", false];

/** `batches` batches of `size` items each; takes `ms` for each batch, and `linger_ms` at the end. */
const produce = {
  *iterBatches({ input_inline: { batches, size = 3, name = "item", ms = 0, linger_ms = 0 } }) {
    for (let index = 0; index < batches; index++) {
      const items = Array.from({ length: size }, (_, at) => `${name}-${index * size + at}`);
      yield { batch_uid: `b${index}`, payload: { items, ms, linger_ms } };
    }
  },
  async processBatch({ payload: { items, ms, linger_ms } }, ctx) {
    await pause(ms, undefined, { signal: ctx.signal });
    ctx.kv.lingerMs = linger_ms;
    ctx.kv.total = (ctx.kv.total ?? 0) + items.length;
    return { skus: items, count: items.length };
  },
  async finalize(ctx) {
    await pause(ctx.kv.lingerMs ?? 0);
    return { total: ctx.kv.total ?? 0 };
  },
};

/** Counts the items that an adapter delivers, and returns the name of the worker. */
const consume = {
  processBatch({ payload }, ctx) {
    const items = payload.items ?? payload.meta?.skus ?? [];
    return { count: items.length, skus: items, by: ctx.worker_id, pid: process.pid };
  },
};

/** Does `good` batches, then fails with `reason`: permanently when `permanent` is set, or in each epoch up to `until`. */
const fail = {
  *iterBatches({ input_inline: told }) {
    for (let index = 0; index <= (told.good ?? 0); index++) yield { batch_uid: `b${index}`, payload: { index, told } };
  },
  processBatch({ payload: { index, told } }, ctx) {
    if (index >= (told.good ?? 0) && ctx.attempt_epoch <= (told.until ?? Infinity)) throw new Failed(told);
    return { count: 1 };
  },
  classifyError,
};

/** One batch that lasts until it is cancelled, or for `ms`. */
const slow = {
  async processBatch({ payload }, ctx) {
    console.error("slow begins");
    await pause(payload.input_inline.ms ?? 600_000, undefined, { signal: ctx.signal });
    return { count: 1 };
  },
};

const habits = { produce, consume, fail, slow };

const tasks = Object.entries(roles).map(([role, habit]) => streamTask(role, habits[habit]));
await work({ tasks, on: flowkit(options), slots });
console.log(JSON.stringify({ ready: true, worker_id: options.workerId }));
