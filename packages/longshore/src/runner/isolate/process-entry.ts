// The program of a process of handlers. It is told what to load by its first message.

import { refuseWork } from "../../load.ts";
import { Handlers } from "./handlers.ts";
import type { HandlerModules, ToHandlers } from "./messages.ts";

refuseWork();
const handlers = new Handlers({
  // Nobody listens any more when the parent is gone; then this process ends.
  post: (message) => void process.send?.(message, undefined, undefined, () => {}),
  // Messages of a process arrive only when its event loop turns.
  look: () => {},
});

// Whoever runs the parent stops it; a terminal's Ctrl-C reaches this process too, which waits for its parent.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
process.once("disconnect", () => process.exit());
process.once("message", (modules: HandlerModules) => {
  process.on("message", (message: ToHandlers) => handlers.take(message));
  void handlers.load(modules);
});
