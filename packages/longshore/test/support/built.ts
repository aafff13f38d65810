// The built package, for tests of threads and processes: their programs are built files.

const built = (path: string) => import(new URL(`../../dist/${path}`, import.meta.url).href);

export const longshore = (await built("index.js")) as typeof import("../../src/index.ts");
export const testing = (await built("testing/index.js")) as typeof import("../../src/testing/index.ts");
export const supervising = (await built("runner/supervise/supervise.js")) as typeof import("../../src/runner/supervise/supervise.ts");
export const evaluating = (await built(
  "protocols/conductor/server/evaluate/evaluator.js",
)) as typeof import("../../src/protocols/conductor/server/evaluate/evaluator.ts");
/** The program of the processes of `longshore work`. */
export const workerChild = new URL("../../dist/cli/worker-child.js", import.meta.url);
