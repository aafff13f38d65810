// The two places in which handlers can run away from the runner: a thread of this process, or a process of its own.

import { fork } from "node:child_process";
import { Worker } from "node:worker_threads";
import type { FromHandlers, HandlerModules, ToHandlers } from "./messages.ts";

export interface Carrier {
  send(message: ToHandlers): void;
  /** Ends it at once, whatever it does. Resolves when it is gone. */
  end(): Promise<void>;
}

export interface CarrierNews {
  readonly message: (message: FromHandlers) => void;
  /** Once, however it ended; also after `end`. */
  readonly ended: (error: Error) => void;
}

export interface CarrierOptions extends HandlerModules {
  /** The most that the objects of one thread or process may take, in megabytes; Node's own limit when absent. */
  readonly memoryMbMax?: number;
}

export type StartCarrier = (options: CarrierOptions, news: CarrierNews) => Carrier;

export const startThread: StartCarrier = ({ files, memoryMbMax }, news) => {
  const resourceLimits = memoryMbMax === undefined ? {} : { maxOldGenerationSizeMb: memoryMbMax };
  const worker = new Worker(new URL("./thread-entry.js", import.meta.url), { workerData: { files }, resourceLimits });
  let cause: Error | undefined;
  // Waiting for work must not keep the process alive; work in progress holds it open.
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
  // A message without a receiver concerns a call that fails with the process.
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
