// A worker as a process of its own, for tests that send it signals: shell commands of the server given as the first argument. After an
// empty claim it asks no more while a test lasts, so that a test knows when no claim is under way.

import { work } from "../../src/index.ts";
import { workflowGraph } from "../../src/protocols/workflow-graph/worker/index.ts";

const url = process.argv[2] as string;
const on = workflowGraph(url, { shell: true, workerId: "child", poll: "10m" });
const worker = await work({ tasks: [], on, slots: 2, drain: "10m" });
await worker.closed;
