// The worker of FlowKit's fault test, on the built package. It writes down every batch that it has processed before it reports it.
import { randomBytes } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { work } from "longshore";
import { flowkit, streamTask } from "longshore/flowkit";

const { roles, slots, history, ...options } = JSON.parse(process.argv[2]);
const file = openSync(history, "a");

/** With one synchronous write, so that `kill -9` loses nothing that was done. */
function note(happening) {
  const tick = Number(process.hrtime.bigint() / 1000n);
  writeSync(file, `${JSON.stringify({ at: Date.now(), tick, ...happening })}\n`);
}

const nodeOf = ({ task_id: task, node_id: node, attempt_epoch: epoch }) => ({ task, node, epoch });

async function process_(items, ms, { batch_uid: uid }, ctx) {
  await pause(ms, undefined, { signal: ctx.signal });
  const token = `${process.pid}-${randomBytes(6).toString("hex")}`;
  note({ kind: "batch-processed", ...nodeOf(ctx), uid, token });
  return { skus: items, count: items.length, token };
}

const make = {
  init: (run) => note({ kind: "node-begun", ...nodeOf(run) }),
  *iterBatches({ input_inline: { batches, size, ms } }) {
    for (let index = 0; index < batches; index++) {
      const items = Array.from({ length: size }, (_, at) => `item-${index * size + at}`);
      yield { batch_uid: `b${index}`, payload: { items, ms } };
    }
  },
  processBatch: (batch, ctx) => process_(batch.payload.items, batch.payload.ms, batch, ctx),
};

const take = {
  init: (run) => note({ kind: "node-begun", ...nodeOf(run) }),
  processBatch: (batch, ctx) => process_(batch.payload.items ?? batch.payload.meta.skus, options.ms ?? 0, batch, ctx),
};

const tasks = Object.entries(roles).map(([kind, role]) => streamTask(role, kind === "make" ? make : take));
const { ms: _ms, ...connection } = options;
await work({ tasks, on: flowkit(connection), slots });
console.log(JSON.stringify({ ready: true }));
