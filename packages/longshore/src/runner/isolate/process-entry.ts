// The program of a process of handlers. Its first message lists the modules to load.

import { refuseWork } from "../../core/load.ts";
import { Handlers } from "./handlers.ts";
import type { HandlerModules, ToHandlers } from "./messages.ts";

refuseWork();
const handlers = new Handlers({
  // When the parent has ended, no process receives the results; then this process ends too.
  post: (message) => void process.send?.(message, undefined, undefined, () => {}),
  // A process receives messages only through its event loop.
  look: () => {},
});

// Signals are ignored here: the parent handles them and then ends this process. A Ctrl-C in a terminal reaches this process too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.once("disconnect", () => process.exit());
process.once("message", (modules: HandlerModules) => {
  process.on("message", (message: ToHandlers) => handlers.take(message));
  void handlers.load(modules);
});
