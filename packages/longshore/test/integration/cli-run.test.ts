// Starting, following and looking at runs from the command line.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type CliOptions, longshore, type ServerProcess, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";

const definitions = `import { existsSync } from "node:fs";
import { graph, task } from "longshore";
export const add = task("add", async ({ a, b }, ctx) => { ctx.log(\`adding \${a} and \${b}\`); return { sum: a + b }; });
export const halve = task("halve", async ({ n }) => { if (n % 2) throw new Error("odd: " + n); return n / 2; });
export const patient = task("patient", async (input, ctx) => new Promise((resolve) => {
  ctx.log("waiting");
  ctx.signal.addEventListener("abort", () => resolve(null));
}));
export const gated = task("gated", async (input, ctx) => {
  ctx.log("at the gate");
  while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
  ctx.log("through the gate");
});
export const gate = graph("gate", (g, input) => g.step(gated, input));
export const mean = graph("mean", (g, input) => {
  const added = g.step(add, { a: input.a, b: input.b });
  return { mean: g.step(halve, { n: added.sum }) };
});
export const forever = graph("forever", (g, input) => g.step(patient, input));
`;

interface Setup {
  readonly server: ServerProcess;
  readonly options: CliOptions;
  run(...args: string[]): ReturnType<typeof longshore>;
}

/** A server with workflows and a worker that can run them. */
async function setup(): Promise<Setup> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "flows.mjs"), definitions);
  const server = await startServer();
  const options: CliOptions = { cwd: folder, env: { LONGSHORE_URL: server.url } };
  const run = (...args: string[]) => longshore(args, options);
  const defined = await run("define", "flows.mjs");
  expect(defined.stdout).toBe("forever version 1\ngate version 1\nmean version 1\n");
  const worker = startLongshore(["work", "flows.mjs"], options);
  await worker.printed(/working for/);
  return { server, options, run };
}

describe("longshore run", () => {
  it("prints the id of a run, and with --follow shows its steps while they run", async () => {
    const { run, options } = await setup();
    const started = await run("run", "gate", "--key", "k");
    expect(started.code).toBe(0);
    expect(started.stdout).toMatch(/^[0-9A-Z]{26}\n$/);
    const following = startLongshore(["run", "gate", "--key", "k", "--follow"], options);
    await following.printed(/● gated running/);
    await following.printed(/at the gate/);
    writeFileSync(join(options.cwd ?? "", "go"), "");
    const { code, stdout } = await following.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/✓ gated done after .*: through the gate\ngate succeeded after /);
  });

  it("shows with --follow a run that is over already, to its output", async () => {
    const { run } = await setup();
    const start = ["run", "mean", "--key", "k", "--input", '{"a":3,"b":5}', "--follow"];
    expect((await run(...start, "--json")).code).toBe(0);
    const { code, stdout } = await run(...start);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^mean \w+\n✓ add done after .*: adding 3 and 5\n✓ halve done after .*\nmean succeeded after .*\n\{\n {2}"mean": 4\n\}\n$/,
    );
  });

  it("takes its input from a file or from standard input, and answers JSON for programs", async () => {
    const { run, options } = await setup();
    writeFileSync(join(options.cwd ?? "", "input.json"), '{"a":1,"b":1}');
    const fromFile = JSON.parse((await run("run", "mean", "--input", "@input.json", "--follow", "--json")).stdout);
    expect(fromFile).toMatchObject({ workflow: "mean", state: "succeeded", output: { mean: 1 } });
    const piped = await longshore(["run", "mean", "--input", "-", "--follow", "--json"], { ...options, input: '{"a":2,"b":2}' });
    expect(JSON.parse(piped.stdout)).toMatchObject({ output: { mean: 2 } });
  });

  it("starts once for one key", async () => {
    const { run } = await setup();
    const [first, second] = [await run("run", "mean", "--key", "k", "--input", '{"a":1,"b":3}'), await run("run", "mean", "--key", "k")];
    expect(second.stdout).toBe(first.stdout);
    expect(JSON.parse((await run("runs", "--json")).stdout).items).toHaveLength(1);
  });

  it("ends with 1 and prints what to do when the run fails", async () => {
    const { run } = await setup();
    const { code, stderr } = await run("run", "mean", "--input", '{"a":1,"b":2}', "--follow");
    expect(code).toBe(1);
    expect(stderr).toMatch(/run \w+ failed: .*odd: 3.*longshore logs \w+.*longshore retry \w+/);
  });

  it("reports which workflow is unknown", async () => {
    const { run } = await setup();
    const { code, stderr } = await run("run", "maen");
    expect(code).toBe(2);
    expect(stderr).toContain("maen");
  });
});

describe("a run that failed", () => {
  it("is listed by its state, tried again and run again", async () => {
    const { run } = await setup();
    await run("run", "mean", "--input", '{"a":1,"b":2}', "--follow");
    const [failed] = JSON.parse((await run("runs", "--state", "failed", "--workflow", "mean", "--json")).stdout).items;
    expect((await run("runs")).stdout).toMatch(new RegExp(`${failed.id} +mean +failed`));
    const retried = await run("retry", failed.id, "--follow", "--json");
    expect(retried.code).toBe(1);
    expect(JSON.parse(retried.stdout)).toMatchObject({ id: failed.id, state: "failed", retries: 1 });
    const again = await run("rerun", failed.id);
    expect(again.code).toBe(0);
    expect(again.stdout.trim()).not.toBe(failed.id);
  });
});

describe("a run that continues", () => {
  it("is followed by its log and cancelled", async () => {
    const { run, options } = await setup();
    const id = (await run("run", "forever")).stdout.trim();
    const following = startLongshore(["logs", id, "--follow"], options);
    await following.printed(/patient waiting/);
    expect((await run("workers")).stdout).toMatch(/busy +workflow-graph .* add, .*patient.* patient {2}/);
    expect((await run("cancel", id, "--reason", "not today")).stdout).toBe(`${id} cancelled: not today\n`);
    expect((await run("runs")).stdout).toMatch(/forever +cancelled .*not today/);
    expect((await run("runs", id)).stdout).toContain("not today");
    const late = await run("cancel", id, "--reason", "too late");
    expect([late.stdout, late.stderr]).toEqual([`${id} cancelled: not today\n`, expect.stringContaining("the reason was not kept")]);
    expect((await following.ended).code).toBe(0);
    const { stdout } = await run("logs", id, "--step", "patient", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ step: "patient", attempt: 1, stream: "stdout", data: "waiting\n" });
    expect((await run("logs", id, "--step", "patient")).stdout).toBe("waiting\n");
  });
});

describe("a restart of the server", () => {
  it("does not end what follows a run or its log", async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, "one.yml"),
      "name: one\non: push\njobs:\n  only: { run: 'echo begins; until test -e go; do sleep 0.05; done; echo ends' }\n",
    );
    const flags = ["--data", join(folder, "data"), "--workflows", folder];
    const first = await startServer(flags);
    const options: CliOptions = { cwd: folder, env: { LONGSHORE_URL: first.url } };
    startLongshore(["work", "--shell"], options);
    const following = startLongshore(["run", "one", "--follow"], options);
    await following.printed(/begins/);
    const id = JSON.parse((await longshore(["runs", "--json"], options)).stdout).items[0].id as string;
    const log = startLongshore(["logs", id, "--follow"], options);
    await log.printed(/only begins/);
    first.kill("SIGKILL");
    await first.ended;
    await startServer([...flags, "--port", String(first.port)]);
    writeFileSync(join(folder, "go"), "");
    expect((await following.ended).code).toBe(0);
    const { code, stdout } = await log.ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "only begins\nonly ends\n" });
  });
});

describe("what waits", () => {
  it("is listed with the reason", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "gpu.yml"), "name: gpu\non: push\njobs:\n  train: { run: echo train, labels: [gpu] }\n");
    const server = await startServer(["--ephemeral", "--workflows", folder]);
    const run = (...args: string[]) => longshore([...args, "--on", server.url]);
    expect((await run("queues")).stdout).toContain("No lane has been used");
    expect((await run("workers")).stdout).toContain("Start one with `longshore work");
    await run("run", "gpu");
    expect((await run("queues")).stdout).toMatch(/command +gpu +1 +0 .*no worker is connected/);
    expect(JSON.parse((await run("queues", "--json")).stdout).items).toMatchObject([
      { labels: ["gpu"], ready: 1, waiting: { reason: "no-worker" } },
    ]);
  });
});

describe("longshore define", () => {
  it("refuses a file with a mistake, with its place", async () => {
    const { run, options } = await setup();
    writeFileSync(join(options.cwd ?? "", "bad.yml"), "name: bad\non: push\njobs:\n  a:\n    needs: nobody\n    run: echo a\n");
    const { code, stderr } = await run("define", "bad.yml");
    expect(code).toBe(2);
    expect(stderr).toBe("longshore: bad.yml:5:12: Job 'a' depends on 'nobody', which doesn't exist\n");
    expect((await run("definitions")).stdout).toMatch(/mean +1 +code/);
  });

  it("reports that a module exports no workflow", async () => {
    const { run, options } = await setup();
    writeFileSync(join(options.cwd ?? "", "empty.mjs"), "export const x = 1;\n");
    const { code, stderr } = await run("define", "empty.mjs");
    expect(code).toBe(2);
    expect(stderr).toContain("empty.mjs exports no workflow");
  });
});
