// The worker of `dev --worker FILE`: a separate process that is started again whenever its files change.

import { relative } from "node:path";
import { type Ending, startWorkerChild, type WorkerChild } from "./child.ts";
import { watchFile } from "./watch-file.ts";

export interface RestartingWorker {
  stop(): Promise<void>;
}

export interface RestartingOptions {
  readonly file: string;
  readonly url: string;
  readonly token?: string;
  readonly trust?: string;
  /** Messages of this command about the worker. */
  readonly say: (text: string) => void;
  /** Messages of the worker. */
  readonly line: (text: string) => void;
}

export function startRestartingWorker({ file, url, token, trust, say, line }: RestartingOptions): RestartingWorker {
  let child: WorkerChild | undefined;
  let stopped = false;
  /** Restarts run one after the other: a change during a restart waits for it. */
  let queue: Promise<void> = Promise.resolve();

  const start = () => {
    const started = startWorkerChild({ file, url, token, trust, line });
    child = started;
    void started.ended.then((ending) => {
      if (child !== started || stopped) return;
      child = undefined;
      say(`${file} ${endingText(ending)} It is started again when a file changes.`);
    });
  };
  const restart = async (path: string) => {
    const old = child;
    child = undefined;
    await old?.stop();
    if (stopped) return;
    say(`${relative(process.cwd(), path)} changed: ${file} is started again.`);
    start();
  };

  const stopWatching = watchFile(file, (path) => {
    queue = queue.then(() => restart(path));
  });
  start();
  return {
    async stop() {
      stopped = true;
      stopWatching();
      await queue;
      await child?.stop();
    },
  };
}

function endingText({ code, signal }: Ending): string {
  if (signal !== null) return `was ended by ${signal}.`;
  if (code === 0) return "ended: it exports no task and calls no work().";
  return `ended with exit code ${code}; its message is above.`;
}
