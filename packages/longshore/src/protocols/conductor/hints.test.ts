import { expect, it } from "vitest";
import { hints } from "./hints.ts";

it("a Conductor worker may take tasks from a lane without labels", () => {
  const { workerFor, ownsLane } = hints({ url: "http://h:1", asksToken: false, flags: {} });
  expect(ownsLane).toBeUndefined();
  expect(workerFor({ name: "greet", labels: [] })).toBe("a Conductor worker of greet with CONDUCTOR_SERVER_URL=http://h:1/api");
  expect(workerFor({ name: "greet", labels: ["gpu"] })).toBeNull();
});
