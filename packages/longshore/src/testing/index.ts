// Tools for tests of handlers and workflows, published as `longshore/testing`.

export { type JournalHistory, type Replayed, replay } from "../runner/function/check.ts";
export { TestClock } from "./clock.ts";
export { Loopback, type LoopbackCall, type LoopbackOptions } from "./loopback.ts";
