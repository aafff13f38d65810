// The two places outside of the runner's thread in which handlers can run: a thread of this process, or a separate process.

import { fork } from "node:child_process";
import { Worker } from "node:worker_threads";
import type { FromHandlers, HandlerModules, ToHandlers } from "./messages.ts";

export interface Carrier {
  send(message: ToHandlers): void;
  /** Ends it at once. Resolves when it has ended. */
  end(): Promise<void>;
}

export interface CarrierNews {
  readonly message: (message: FromHandlers) => void;
  /** Called once when it has ended, for any reason; also after `end`. */
  readonly ended: (error: Error) => void;
}

export interface CarrierOptions extends HandlerModules {
  /** The memory limit for the objects of one thread or process, in megabytes. Default: Node's own limit. */
  readonly memoryMbMax?: number;
}

export type StartCarrier = (options: CarrierOptions, news: CarrierNews) => Carrier;

export const startThread: StartCarrier = ({ files, memoryMbMax }, news) => {
  const resourceLimits = memoryMbMax === undefined ? {} : { maxOldGenerationSizeMb: memoryMbMax };
  const worker = new Worker(new URL("./thread-entry.js", import.meta.url), { workerData: { files }, resourceLimits });
  let cause: Error | undefined;
  // An idle thread must not keep the process alive; running work keeps it alive.
  worker.unref();
  worker.on("message", news.message);
  worker.on("messageerror", () => void worker.terminate());
  worker.on("error", (error) => {
    cause = error as Error;
  });
  worker.on("exit", (code) => news.ended(cause ?? new Error(`it ended with exit code ${code}`)));
  return {
    send: (message) => worker.postMessage(message),
    end: async () => void (await worker.terminate()),
  };
};

export const startProcess: StartCarrier = ({ files, memoryMbMax }, news) => {
  const entry = new URL("./process-entry.js", import.meta.url);
  const execArgv = memoryMbMax === undefined ? [] : [`--max-old-space-size=${memoryMbMax}`];
  const child = fork(entry, { execArgv, serialization: "advanced" });
  const gone = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      news.ended(error);
      resolve();
    });
    child.once("exit", (code, signal) => {
      news.ended(new Error(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`));
      resolve();
    });
  });
  child.on("message", (message) => news.message(message as FromHandlers));
  child.unref();
  child.channel?.unref();
  // A message that cannot be sent belongs to a call that fails with the process.
  const send = (message: unknown) => void child.send(message as object, () => {});
  send({ files });
  return {
    send,
    end: () => {
      child.kill("SIGKILL");
      return gone;
    },
  };
};
