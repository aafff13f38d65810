// Compares docs/reference/environment.md with the code in both directions: the variables of Stepflow's and FlowKit's workers and of
// OpenTelemetry.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readDocument } from "../../support/markdown.ts";

const repository = fileURLToPath(new URL("../../../../../", import.meta.url));
/** The files that read variables: in workers, and some in the server. */
const readers = [
  "packages/longshore/src/telemetry",
  "packages/longshore/src/protocols/stepflow/worker/http/options.ts",
  "packages/longshore/src/protocols/stepflow/worker/*environment.ts",
  "packages/longshore/src/protocols/stepflow/worker/*options.ts",
  "packages/longshore/src/protocols/stepflow/server/prepare.ts",
  "packages/longshore/src/protocols/flowkit/worker/environment.ts",
  "packages/longshore/src/protocols/flowkit/worker/connect.ts",
  "packages/longshore/src/protocols/flowkit/worker/log.ts",
  "packages/longshore/src/protocols/flowkit/server/coordinator/config.ts",
  "packages/longshore/src/bus/kafka/environment.ts",
];
const pattern = /\b(?:STEPFLOW|OTEL|FLOWKIT|KAFKA)_[A-Z_]+[A-Z]\b/g;

it("every variable that is read is on the page, and no other", () => {
  const files = execFileSync("git", ["ls-files", "--", ...readers], { cwd: repository, encoding: "utf8" }).split("\n");
  const sources = files.filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"));
  // The default name of a stream looks like a variable but is not one.
  const named = (text: string) => [...text.matchAll(pattern)].map(([name]) => name).filter((name) => name !== "STEPFLOW_TASKS");
  const read = new Set(sources.flatMap((path) => named(readDocument(path))));
  expect(read.size).toBeGreaterThan(15);
  expect([...new Set(named(readDocument("docs/reference/environment.md")))].sort()).toEqual([...read].sort());
});
