// One worker as a process of its own: `node --import tsx worker-process.ts '{"url":...}'`. SIGTERM lets the jobs in hand finish.
import { runWorker, type WorkerSettings } from "./raw-worker.ts";

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());
await runWorker(settings, stopping.signal);
