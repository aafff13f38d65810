// The same worker, written for the official JavaScript SDK. The variable SDK names the folder that the SDK is loaded from.
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.SDK}/package.json`);
const { getTaskContext, NonRetryableException, OrkesClients, TaskHandler } = require("@io-orkes/conductor-javascript");

const marks = process.env.MARKS_FILE;
const completed = (outputData) => ({ status: "COMPLETED", outputData });

const handlers = {
  greet: async ({ inputData: { input } }) => {
    getTaskContext().addLog(`greeting ${input.name}`);
    return completed({ text: `Hello, ${input.name}!` });
  },
  flaky: async ({ retryCount }) => {
    if (retryCount < 2) throw new Error(`not yet, attempt ${retryCount + 1}`);
    return completed({ attempt: retryCount + 1 });
  },
  failing: async () => {
    throw new Error("it went wrong");
  },
  hopeless: async () => {
    throw new NonRetryableException("this can never work");
  },
  deferred: async ({ pollCount }) =>
    pollCount === 1 ? { status: "IN_PROGRESS", callbackAfterSeconds: 1, outputData: { half: true } } : completed({ calls: pollCount }),
  slow: async ({ inputData: { input } }) => {
    await new Promise((resolve) => setTimeout(resolve, input.seconds * 1000));
    return completed({ slept: input.seconds });
  },
  mark: async ({ inputData: { input } }) => {
    appendFileSync(marks, `${input.n}\n`);
    if (input.ms) await new Promise((resolve) => setTimeout(resolve, input.ms));
    return completed({ n: input.n });
  },
};

const clients = await OrkesClients.from({ serverUrl: process.env.SERVER_URL });
const workers = Object.entries(handlers).map(([taskDefName, execute]) => ({
  taskDefName,
  execute,
  concurrency: 10,
  pollInterval: 20,
  leaseExtendEnabled: true,
}));
const handler = new TaskHandler({ client: clients.getClient(), workers, scanForDecorated: false });
await handler.startWorkers();
console.log("ready");
process.on("SIGTERM", async () => {
  await handler.stopWorkers();
  process.exit(0);
});
