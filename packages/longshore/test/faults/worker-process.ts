// One worker as a process of its own: `node --import tsx worker-process.ts '{"url":...}'`. After SIGTERM it finishes its jobs.
import { runWorker, type WorkerSettings } from "./raw-worker.ts";

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());
await runWorker(settings, stopping.signal);
