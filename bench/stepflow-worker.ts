// Our worker of the Stepflow benchmark, in its own process. Its component `report` returns what it has counted.
import { task, work } from "longshore";
import { stepflowGrpc, stepflowHttp } from "longshore/stepflow";
import { cpuMicroseconds } from "./processes.ts";

const executions: number[] = [];
let extra = 0;
/** For the long flow: when each step was begun, and the server's CPU time until then. */
const times: number[] = [];
const cpu: number[] = [];
const serverPid = Number(process.env.SERVER_PID);
/** Reading another process's time has a cost, too, so it is not read at every step. */
const READ_EVERY = 100;

const tasks = [
  task("tally", async (input: { n: number }) => {
    executions[input.n] = (executions[input.n] ?? 0) + 1;
    if (executions[input.n] !== 1) extra++;
    return input;
  }),
  task("link", async ({ index }: { index: number }) => {
    times[index] = performance.now();
    if (index % READ_EVERY === 0) cpu[index] = cpuMicroseconds(serverPid);
    return { index: index + 1 };
  }),
  task("report", async () => ({ distinct: executions.filter((count) => count > 0).length, extra })),
  task("spans", async ({ spans }: { spans: readonly { from: number; to: number }[] }) =>
    spans.map(({ from, to }) => ({
      milliseconds: ((times[to] as number) - (times[from] as number)) / (to - from),
      cpu: ((cpu[to] as number) - (cpu[from] as number)) / (to - from),
    })),
  ),
];

const slots = Number(process.env.STEPFLOW_MAX_CONCURRENT);
await work({ tasks, on: process.env.TRANSPORT === "http" ? stepflowHttp() : stepflowGrpc(), slots, logger: false });
