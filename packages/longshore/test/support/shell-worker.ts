// A worker in its own process, for tests that send it signals: it runs shell commands of the server that the first argument names. After an
// empty claim it claims no more during a test, so the test knows when no claim is open.

import { work } from "../../src/index.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";

const url = process.argv[2] as string;
const on = workflowGraph(url, { shell: true, workerId: "child", poll: "10m" });
const worker = await work({ tasks: [], on, slots: 2, drain: "10m" });
await worker.closed;
