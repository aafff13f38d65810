import { describe, expect, it } from "vitest";
import { LongshoreError } from "../../../core/errors.ts";
import { parseFile } from "./file.ts";

const yaml = (...lines: string[]): string => `${lines.join("\n")}\n`;
const head = ["name: Sample", "on: push"];
const jobsOf = (text: string) => parseFile(text).graph.jobs;

function refusal(text: string, file?: string): LongshoreError {
  try {
    parseFile(text, file === undefined ? {} : { file });
  } catch (error) {
    if (error instanceof LongshoreError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

// The twelve test cases of the reference's own parser, rewritten.
describe("definition files that the reference accepts or refuses", () => {
  it("[G64] reads names, trigger and jobs in order", () => {
    const { graph } = parseFile(
      yaml(
        "name: Pipeline",
        "on: push",
        "jobs:",
        "  lint: { name: Lint, run: npm run lint }",
        "  test: { name: Tests, run: npm test }",
        "  build:",
        "    needs: [lint, test]",
        "    run: npm run build",
      ),
    );
    expect(graph).toMatchObject({ name: "Pipeline", trigger: "on: push" });
    expect(graph.jobs.map((job) => [job.id, job.name, job.command, job.depends_on])).toEqual([
      ["lint", "Lint", "npm run lint", []],
      ["test", "Tests", "npm test", []],
      ["build", "build", "npm run build", ["lint", "test"]],
    ]);
  });

  it("[G64] joins steps into one command", () => {
    const [job] = jobsOf(
      yaml(...head, "jobs:", "  ship:", "    steps:", "      - name: Migrate", "        run: ./migrate.sh", "      - run: ./release.sh"),
    );
    expect(job?.command).toBe("echo '=== Migrate ===' && ./migrate.sh && echo '=== step 2 ===' && ./release.sh");
  });

  it("[G64] refuses a dependency on a job that does not exist", () => {
    const error = refusal(yaml(...head, "jobs:", "  build:", "    needs: [nowhere]", "    run: make"));
    expect(error.code).toBe("LONGSHORE_BAD_DEFINITION");
    expect(error.message).toContain("Job 'build' depends on 'nowhere', which doesn't exist");
    expect(error.detail).toMatchObject({ field: "jobs.build.needs[0]", line: 5, column: 13 });
  });

  it("[G64] refuses a job without run and without steps", () => {
    const error = refusal(yaml(...head, "jobs:", "  empty: { name: Nothing }"));
    expect(error.message).toContain("Job must have either 'run' or 'steps'");
    expect(error.detail).toMatchObject({ field: "jobs.empty", line: 4, column: 3 });
  });

  it("[G64] accepts an empty map of jobs", () => {
    expect(jobsOf(yaml(...head, "jobs: {}"))).toEqual([]);
  });

  it("[G64] accepts one dependency as a plain text", () => {
    expect(jobsOf(yaml(...head, "jobs:", "  a: { run: echo a }", "  b: { needs: a, run: echo b }"))[1]?.depends_on).toEqual(["a"]);
  });

  it("[G64] keeps special characters of ids and names", () => {
    const [job] = jobsOf(yaml(...head, "jobs:", "  make-linux_x86:", '    name: "Make (Linux, x86_64): all"', '    run: echo "making"'));
    expect(job).toMatchObject({ id: "make-linux_x86", name: "Make (Linux, x86_64): all", command: 'echo "making"' });
  });

  it("[G64] reads labels and retries", () => {
    const [job] = jobsOf(yaml(...head, "jobs:", "  a: { run: ./a, labels: [linux, aws], retries: 3 }"));
    expect(job).toMatchObject({ required_labels: ["linux", "aws"], max_retries: 3 });
  });

  it("[G64] exports global, then job variables before the command", () => {
    const [job] = jobsOf(yaml(...head, "env: { GLOBAL: one }", "jobs:", "  a:", "    run: echo hi", "    env: { LOCAL: it's }"));
    expect(job?.command).toBe("export GLOBAL='one' && export LOCAL='it'\\''s' && echo hi");
  });

  it("[G64] reads JSON, indented with tabs or not", () => {
    const text = '{\n\t"name": "J",\n\t"on": ["push", "tag"],\n\t"jobs": {\n\t\t"a": { "run": "echo \\"a\\"" }\n\t}\n}';
    const { graph, id } = parseFile(text, { file: "flows/nightly.json" });
    expect(id).toBe("nightly");
    expect(graph).toMatchObject({ name: "J", trigger: "on: [push, tag]", jobs: [{ id: "a", command: 'echo "a"' }] });
  });

  it("[G64] refuses a text that is not YAML, with the place", () => {
    const error = refusal("this is no yaml: [[[");
    expect(error.code).toBe("LONGSHORE_BAD_DEFINITION");
    expect(error.detail).toMatchObject({ line: 1, column: 21 });
  });

  it("[G64] quotes variables that contain quotes", () => {
    const [job] = jobsOf(yaml(...head, 'env: { A: "it\'s a test" }', "jobs:", "  a: { run: echo $A }"));
    expect(job?.command).toBe("export A='it'\\''s a test' && echo $A");
  });
});

describe("the meaning of definition files on our server", () => {
  it("[G64] keeps a quote in a step's name harmless and groups several lines", () => {
    const [job] = jobsOf(
      yaml(...head, "jobs:", "  a:", "    steps:", "      - name: it's", "        run: |", "          echo two", "          echo three"),
    );
    expect(job?.command).toBe("echo '=== it'\\''s ===' && { echo two\necho three\n}");
  });

  it("[G64] accepts a timeout, and leaves out a step or a job with `if: false`", () => {
    const jobs = jobsOf(
      yaml(
        ...head,
        "jobs:",
        "  a:",
        "    timeout: 90",
        "    steps: [{ run: echo a }, { run: echo never, if: false }]",
        "  b: { run: echo b, if: false }",
        "  c: { run: echo c, if: true }",
      ),
    );
    expect(jobs.map((job) => [job.id, job.timeout_secs, job.skip])).toEqual([
      ["a", 90, false],
      ["b", null, true],
      ["c", null, false],
    ]);
    expect(jobs[0]?.command).toBe("echo '=== step 1 ===' && echo a");
  });

  it("[G64] warns of keys it does not know, with line and column", () => {
    const { warnings } = parseFile(yaml(...head, "strategy: fast", "jobs:", "  a:", "    run: echo a", "    matrix: [1, 2]"));
    expect(warnings).toEqual([
      expect.objectContaining({ field: "strategy", line: 3, column: 1, message: expect.stringContaining("'strategy' is not known") }),
      expect.objectContaining({ field: "jobs.a.matrix", line: 7, column: 5 }),
    ]);
  });

  it("warns of a condition that it does not evaluate", () => {
    const { warnings, graph } = parseFile(yaml(...head, "jobs:", "  a: { run: echo a, if: github.ref == 'main' }"));
    expect(warnings).toEqual([expect.objectContaining({ field: "jobs.a.if", line: 4 })]);
    expect(graph.jobs[0]?.skip).toBe(false);
  });

  it("reads the keys that only Longshore has", () => {
    const jobs = jobsOf(
      yaml(
        ...head,
        "jobs:",
        "  a: { run: x, max_lost_leases: 0, priority: -5, backoff: 5 }",
        "  b: { run: x, backoff: { base: 2, max: 60 } }",
        "  c: { run: x, backoff: none }",
      ),
    );
    expect(jobs[0]).toMatchObject({ max_lost_leases: 0, priority: -5, backoff: { Fixed: { delay_secs: 5 } } });
    expect(jobs[1]).toMatchObject({ max_lost_leases: 1, priority: 0, backoff: { Exponential: { base_secs: 2, max_secs: 60 } } });
    expect(jobs[2]?.backoff).toBe("None");
  });

  it("keeps a variable as it is written, and does not convert it to a number", () => {
    const [job] = jobsOf(yaml(...head, "env: { VERSION: 1.10, MODE: 0644, ON: true, NONE: }", "jobs:", "  a: { run: x }"));
    expect(job?.command).toBe("export VERSION='1.10' && export MODE='0644' && export ON='true' && export NONE='' && x");
  });

  it.each([
    ["on: push", "on: push"],
    ["on: [push, pull_request]", "on: [push, pull_request]"],
    ["on: { push: { branches: [main] }, tag: }", "on: [push, tag]"],
    ["on: { push: , schedule: [{ every: 1h }] }", "on: [push, schedule]"],
  ])("shows the trigger %s", (line, trigger) => {
    expect(parseFile(yaml("name: n", line, "jobs: {}")).graph.trigger).toBe(trigger);
  });

  it("follows anchors and aliases", () => {
    const jobs = jobsOf(yaml(...head, "jobs:", "  a: &a { run: echo a, labels: [x] }", "  b: *a"));
    expect(jobs[1]).toMatchObject({ id: "b", command: "echo a", required_labels: ["x"] });
  });
});

describe("definition files that are refused", () => {
  it.each([
    ["no name", yaml("on: push", "jobs: {}"), "missing field `name`", "", 1, 1],
    ["no trigger", yaml("name: n", "jobs: {}"), "missing field `on`", "", 1, 1],
    ["no jobs", yaml(...head), "missing field `jobs`", "", 1, 1],
    ["a list at the top", "- a\n", "A definition is a map", "", 1, 1],
    ["a key twice", yaml(...head, "jobs:", "  a: { run: x }", "  a: { run: y }"), "'a' is there twice", "jobs.a", 5, 3],
    ["a job that needs itself", yaml(...head, "jobs:", "  a: { run: x, needs: a }"), "depends on itself", "jobs.a", 4, 3],
    [
      "a cycle",
      yaml(...head, "jobs:", "  a: { run: x, needs: c }", "  b: { run: x, needs: a }", "  c: { run: x, needs: b }"),
      "wait for each other: 'a' -> 'c' -> 'b' -> 'a'",
      "jobs.a",
      4,
      3,
    ],
    ["a bare text as labels", yaml(...head, "jobs:", "  a:", "    run: x", "    labels: linux"), "not a list", "jobs.a.labels", 6, 13],
    ["negative retries", yaml(...head, "jobs:", "  a: { run: x, retries: -1 }"), "below zero", "jobs.a.retries", 4, 25],
    [
      "retries that are no number",
      yaml(...head, "jobs:", "  a: { run: x, retries: many }"),
      "not a whole number: many",
      "jobs.a.retries",
      4,
      25,
    ],
    ["a timeout of zero", yaml(...head, "jobs:", "  a: { run: x, timeout: 0 }"), "timeout of 0 s", "jobs.a", 4, 3],
    [
      "a variable's name that is shell",
      yaml(...head, "env: { 'A;rm': x }", "jobs: {}"),
      "cannot be the name of a variable",
      "env.A;rm",
      3,
      8,
    ],
    ["a variable that is a list", yaml(...head, "env: { A: [1] }", "jobs: {}"), "no single value", "env.A", 3, 11],
    ["two documents", "name: a\n---\nname: b\n", "not YAML", "", 2, 1],
    ["an alias of nothing", yaml(...head, "jobs: *nothing"), "cannot be read", "", 1, 1],
    ["too many retries", yaml(...head, "jobs:", "  a: { run: x, retries: 5000 }"), "5000 retries", "jobs.a", 4, 3],
  ])("refuses %s", (_what, text, message, field, line, column) => {
    const error = refusal(text);
    expect(error.message).toContain(message);
    expect(error.detail).toMatchObject({ field, line, column, expected: expect.any(String) });
  });

  it.each(['{"handler": 1}', "@", '{"handler":"greet"'])(
    "refuses a command that begins like a handler call but is not valid: %s",
    (run) => {
      expect(refusal(yaml(...head, "jobs:", `  a: { run: '${run}' }`)).detail).toMatchObject({ field: "jobs.a", line: 4 });
    },
  );

  it("calls a handler without the environment, with a warning, and never turns the call into a shell command", () => {
    const { graph, warnings } = parseFile(
      yaml(...head, "env: { A: x }", "jobs:", "  a: { run: '@greet {\"name\":1}' }", "  b: { run: ls }"),
    );
    expect(graph.jobs.map(({ command }) => command)).toEqual(['@greet {"name":1}', "export A='x' && ls"]);
    expect(warnings).toMatchObject([{ message: expect.stringContaining("no environment"), line: 5 }]);
  });

  it("refuses a step that calls a handler", () => {
    expect(refusal(yaml(...head, "jobs:", "  a:", "    steps:", "      - { run: '@greet' }")).message).toContain("cannot call a handler");
  });

  it("refuses aliases that multiply without end", () => {
    const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
    for (const [name, of] of ["ba", "cb", "dc", "ed"]) bomb.push(`${name}: &${name} [${Array(10).fill(`*${of}`).join(", ")}]`);
    expect(refusal(yaml(...bomb)).message).toContain("alias");
  });

  it("refuses a text that is nested too deeply", () => {
    expect(refusal("[".repeat(50_000)).code).toBe("LONGSHORE_BAD_DEFINITION");
  });

  it("refuses a file that is too large", () => {
    expect(refusal(`name: ${"x".repeat(2_097_152)}`).detail).toMatchObject({ expected: "at most 2097152" });
  });

  it("reads a .json file strictly as JSON, with the place of a mistake", () => {
    const error = refusal('{\n  "name": "n",\n  "on": "push",\n  "jobs": {},\n}', "a.json");
    expect(error.message).toContain("trailing comma");
    expect(error.detail).toMatchObject({ line: 5, column: 1 });
  });
});
