// Tools for tests of handlers and workflows, published as `longshore/testing`.

export { TestClock } from "./clock.ts";
export { Loopback, type LoopbackCall, type LoopbackOptions } from "./loopback.ts";
