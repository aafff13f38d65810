// One worker of Stepflow's queues as a process of its own. After SIGTERM it finishes its tasks.
import { runStepflowWorker, type StepflowWorkerSettings } from "./stepflow-worker.ts";

const settings = JSON.parse(process.argv[2] ?? "{}") as StepflowWorkerSettings;
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());
await runStepflowWorker(settings, stopping.signal);
