import { expect, it } from "vitest";
import type { WaitingNews } from "../server/index.ts";
import { protocolHints } from "./protocols.ts";
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
const hints = await protocolHints({ url: "http://h:1", asksToken: false, flags: {} });
const line = (more: Partial<WaitingNews>) => waitingLine({ ...news, ...more }, hints, (_, text) => text);

it("shows what waits, why, and which worker would help", () => {
  expect(line({})).toBe(
    "waits train and 2 more (run R1): no live worker has the label gpu. Start one: npx longshore work --shell --labels gpu --on http://h:1",
  );
  expect(line({ tasks: 1, runId: null, lane: "greet", labels: ["gpu"] })).toBe(
    "waits train: no live worker has the label gpu. Start one: npx longshore work FILE --labels gpu --on http://h:1, where FILE exports a task named greet",
  );
  expect(line({ tasks: 1, lane: "greet", labels: [] })).toMatch(
    /a task named greet, or a Conductor worker of greet with CONDUCTOR_SERVER_URL=http:\/\/h:1\/api, or a FlowKit worker of the role greet with FLOWKIT_URL=http:\/\/h:1$/,
  );
  expect(line({ tasks: 1, lane: "stepflow:python", labels: [] })).toMatch(
    /Start one: a Stepflow worker with STEPFLOW_TASKS_URL=h:1 and STEPFLOW_QUEUE_NAME=python$/,
  );
  expect(line({ tasks: 1, lane: "stepflow-http:node", labels: [] })).not.toContain("Start one");
  expect(line({ tasks: 1, labels: ["handler:greet"] })).toMatch(/work FILE --on http:\/\/h:1, where FILE exports a task named greet$/);
});

it("advises no worker where none would help", () => {
  expect(line({ tasks: 1, reason: "busy", text: "every worker is at work" })).toBe("waits train (run R1): every worker is at work.");
});

it("reports when it has ended", () => {
  expect(line({ kind: "over", tasks: 1, forMs: 1_500 })).toBe("goes on train, after 1.5 s");
  expect(line({ kind: "ended", tasks: 1, forMs: 1_500 })).toBe("ended train, after 1.5 s in vain");
});
