// The program of a child process that runs handlers. The first message that it receives lists the modules to load.

import { refuseWork } from "../../core/load.ts";
import { Handlers } from "./handlers.ts";
import type { HandlerModules, ToHandlers } from "./messages.ts";

refuseWork();
const handlers = new Handlers({
  // The empty callback ignores a failed send: when the parent has ended, no one needs the result, and `disconnect` ends this process.
  post: (message) => void process.send?.(message, undefined, undefined, () => {}),
  // There is nothing to do: unlike a thread, a process cannot read arrived messages before its event loop delivers them.
  look: () => {},
});

// Signals are ignored here: the parent handles them and then ends this process. A Ctrl-C in a terminal reaches this process too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.once("disconnect", () => process.exit());
process.once("message", (modules: HandlerModules) => {
  process.on("message", (message: ToHandlers) => handlers.take(message));
  void handlers.load(modules);
});
