import { expect, it } from "vitest";
import type { ProtocolHints } from "../protocols/hints.ts";
import type { WaitingNews } from "../server/index.ts";
import { waitingLine } from "./waiting-line.ts";

const news: WaitingNews = {
  kind: "waiting",
  reason: "no-worker",
  text: "no live worker has the label gpu",
  tasks: 3,
  taskId: "R1.0",
  step: "train",
  runId: "R1",
  lane: "$command",
  labels: ["gpu"],
  forMs: 0,
};
const hints: readonly ProtocolHints[] = [
  {
    protocol: "alpha",
    snippets: [],
    ownsLane: (name) => name.startsWith("$"),
    workerFor: ({ name, labels }) => (name === "$called" ? null : `alpha work ${name} --labels ${labels.join(",")}`),
  },
  { protocol: "beta", snippets: [], workerFor: ({ name, labels }) => (labels.length > 0 ? null : `a beta worker of ${name}`) },
];
const line = (more: Partial<WaitingNews>) => waitingLine({ ...news, ...more }, hints, (_, text) => text);

it("shows what waits, why, and which worker to start", () => {
  expect(line({})).toBe("waits train and 2 more (run R1): no live worker has the label gpu. Start one: alpha work $command --labels gpu");
  expect(line({ tasks: 1, runId: null, lane: "greet", labels: ["gpu"] })).toBe(
    "waits train: no live worker has the label gpu. Start one: alpha work greet --labels gpu",
  );
});

it("suggests a worker of every protocol for a lane that belongs to no protocol, else one of the lane's protocol", () => {
  expect(line({ lane: "greet", labels: [] })).toMatch(/Start one: alpha work greet --labels , or a beta worker of greet$/);
  expect(line({ lane: "$own", labels: [] })).toMatch(/Start one: alpha work \$own --labels $/);
  expect(line({ lane: "$called", labels: [] })).not.toContain("Start one");
});

it("suggests no worker when none would help", () => {
  expect(line({ tasks: 1, reason: "busy", text: "every worker is at work" })).toBe("waits train (run R1): every worker is at work.");
});

it("reports when the wait has ended", () => {
  expect(line({ kind: "over", tasks: 1, forMs: 1_500 })).toBe("continues train, after 1.5 s");
  expect(line({ kind: "ended", tasks: 1, forMs: 1_500 })).toBe("ended train after waiting 1.5 s");
});
