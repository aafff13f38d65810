import { describe, expect, it } from "vitest";
import type { Job } from "../wire/shapes.ts";
import { fromJobs } from "./jobs.ts";
import { decodeSource } from "./source.ts";

function job(id: string, more: Partial<Job> = {}): Job {
  return {
    ...{ id, name: id, status: "queued", command: `echo ${id}`, duration_secs: null, started_at: null, depends_on: [], output: null },
    ...{ required_labels: [], max_retries: 0, attempt: 0, metadata: {}, ports: [], children: null, collapsed: false },
    ...more,
  };
}

const create = (...jobs: Job[]) => fromJobs({ name: "n", trigger: "t", jobs });

describe("definitions in the runtime form", () => {
  it("keeps what editors store with a job", () => {
    const port = { id: "p", label: "P", direction: "input" as const, port_type: "", color: null };
    const drawn = { metadata: { icon: "gear", deep: { n: [1, null] } }, ports: [port], children: [job("inner")], collapsed: true };
    expect(decodeSource(create(job("a", drawn)).source).jobs[0]).toMatchObject(drawn);
  });

  it("makes equal texts for equal definitions, for any states in the input", () => {
    const seen = job("a", { status: "success", duration_secs: 5, started_at: 1, output: "x", attempt: 3 });
    expect(create(seen).source).toBe(create(job("a")).source);
  });

  it.each([
    ["a cycle", [job("a", { depends_on: ["b"] }), job("b", { depends_on: ["a"] })], "wait for each other: 'a' -> 'b' -> 'a'", "jobs[0].id"],
    ["a dependency on itself", [job("a", { depends_on: ["a"] })], "Job 'a' depends on itself", "jobs[0].id"],
    ["two jobs of one id", [job("a"), job("a")], "Two jobs have the id 'a'", "jobs[1].id"],
    ["an unknown dependency", [job("b"), job("a", { depends_on: ["b", "zz"] })], "Job 'a' depends on 'zz'", "jobs[1].depends_on[1]"],
    ["an empty id", [job("")], "has 0 characters", "jobs[0].id"],
    ["a control character in an id", [job("a\nb")], "control character", "jobs[0].id"],
    ["too many labels", [job("a", { required_labels: Array(65).fill("x") })], "requires 65 labels", "jobs[0].id"],
  ])("[G37] refuses %s", (_what, jobs, message, field) => {
    expect(() => create(...jobs)).toThrow(
      expect.objectContaining({
        code: "LONGSHORE_BAD_DEFINITION",
        message: expect.stringContaining(message),
        detail: expect.objectContaining({ field }),
      }),
    );
  });

  it("accepts a long chain without overflowing", () => {
    const chain = Array.from({ length: 20_000 }, (_, at) => job(`j${at}`, at === 0 ? {} : { depends_on: [`j${at - 1}`] }));
    expect(create(...chain).graph.jobs).toHaveLength(20_000);
  });
});
