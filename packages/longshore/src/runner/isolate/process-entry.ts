// The program of a process of handlers. Its first message names what to load.

import { refuseWork } from "../../core/load.ts";
import { Handlers } from "./handlers.ts";
import type { HandlerModules, ToHandlers } from "./messages.ts";

refuseWork();
const handlers = new Handlers({
  // When the parent is gone no process receives the results; then this process ends.
  post: (message) => void process.send?.(message, undefined, undefined, () => {}),
  // Messages of a process arrive only when its event loop turns.
  look: () => {},
});

// The parent is stopped by its own supervisor; a terminal's Ctrl-C reaches this process too, which waits for its parent.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.once("disconnect", () => process.exit());
process.once("message", (modules: HandlerModules) => {
  process.on("message", (message: ToHandlers) => handlers.take(message));
  void handlers.load(modules);
});
