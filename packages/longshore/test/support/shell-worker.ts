// A worker as a process of its own, for tests that send it signals: shell commands of the server given as the first argument.

import { work } from "../../src/index.ts";
import { workflowGraph } from "../../src/protocol/workflow-graph/index.ts";

const url = process.argv[2] as string;
const worker = await work({ tasks: [], on: workflowGraph(url, { shell: true, workerId: "child" }), slots: 2, drain: "10m" });
await worker.closed;
