// Starting, following and showing runs from the command line.

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

  it("shows with --follow a run that has already ended, with its output", async () => {
    const { run } = await setup();
    const start = ["run", "mean", "--key", "k", "--input", '{"a":3,"b":5}', "--follow"];
    expect((await run(...start, "--json")).code).toBe(0);
    const { code, stdout } = await run(...start);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^mean \w+\n✓ add done after .*: adding 3 and 5\n✓ halve done after .*\nmean succeeded after .*\n\{\n {2}"mean": 4\n\}\n$/,
    );
  });

  it("reads its input from a file or from standard input, and prints JSON for programs", async () => {
    const { run, options } = await setup();
    writeFileSync(join(options.cwd ?? "", "input.json"), '{"a":1,"b":1}');
    const fromFile = JSON.parse((await run("run", "mean", "--input", "@input.json", "--follow", "--json")).stdout);
    expect(fromFile).toMatchObject({ workflow: "mean", state: "succeeded", output: { mean: 1 } });
    const piped = await longshore(["run", "mean", "--input", "-", "--follow", "--json"], { ...options, input: '{"a":2,"b":2}' });
    expect(JSON.parse(piped.stdout)).toMatchObject({ output: { mean: 2 } });
  });

  it("starts one run for one key", async () => {
    const { run } = await setup();
    const start = () => run("run", "mean", "--key", "k", "--input", '{"a":1,"b":3}');
    const [first, second] = [await start(), await start()];
    expect(second.stdout).toBe(first.stdout);
    const other = await run("run", "mean", "--key", "k");
    expect({ code: other.code, stderr: other.stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("another input") });
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
    expect({ code, stderr }).toEqual({ code: 2, stderr: 'longshore: there is no workflow "maen". Did you mean "mean"?\n' });
    expect((await run("run", "billing")).stderr).toContain('there is no workflow "billing". Defined are: forever, gate, mean.');
  });

  it("prints on Ctrl-C that the run continues, and so does `longshore logs`", async () => {
    const { run, options } = await setup();
    const following = startLongshore(["run", "forever", "--follow"], options);
    await following.printed(/waiting/);
    following.kill("SIGINT");
    const ended = await following.ended;
    expect({ code: ended.code, stderr: ended.stderr }).toEqual({
      code: 130,
      stderr: expect.stringMatching(/^longshore: run (\w+) continues without this command\. .*end it with `longshore cancel \1`\.\n$/),
    });
    const [{ id, state }] = JSON.parse((await run("runs", "--json")).stdout).items;
    expect(state).toBe("running");
    const log = startLongshore(["logs", id, "--follow"], options);
    await log.printed(/patient waiting/);
    log.kill("SIGINT");
    expect(await log.ended).toMatchObject({ code: 130, stderr: expect.stringContaining(`run ${id} continues`) });
  });
});

describe("longshore runs ID", () => {
  it("shows the input and the outputs, as lines and as JSON", async () => {
    const { run } = await setup();
    const input = '{"a":3,"b":5}';
    const { id } = JSON.parse((await run("run", "mean", "--input", input, "--follow", "--json")).stdout);
    const { stdout } = await run("runs", id);
    expect(stdout).toMatch(
      /^mean {2}succeeded .*\ninput {3}\{"a":3,"b":5\}\n✓ add .*\n {4}→ \{"sum":8\}\n✓ halve .*\n {4}→ 4\noutput {2}\{"mean":4\}\n$/,
    );
    expect(JSON.parse((await run("runs", id, "--json")).stdout)).toMatchObject({
      input: { a: 3, b: 5 },
      output: { mean: 4 },
      steps: [
        { id: "add", input: { a: 3, b: 5 }, output: { sum: 8 } },
        { id: "halve", output: 4 },
      ],
    });
  });

  it("accepts the beginning of an id, like the other commands, and names the runs when there are several", async () => {
    const { run } = await setup();
    const ids = [];
    for (const a of [1, 2]) ids.push((await run("run", "mean", "--input", `{"a":${a},"b":1}`)).stdout.trim());
    const [first = "", second = ""] = ids;
    const start = [...first].findIndex((char, at) => char !== second[at]);
    const short = first.slice(0, start + 1).toLowerCase();
    expect((await run("runs", short)).stdout).toContain(first);
    expect((await run("logs", short)).stdout).toContain("add adding 1 and 1");
    expect((await run("rerun", short)).code).toBe(0);
    const several = await run("cancel", first.slice(0, start));
    expect(several.code).toBe(2);
    expect(several.stderr).toMatch(
      new RegExp(`several runs .*begins with ${first.slice(0, start)}\\. Write more of it:\\n[^]*${first} {2}mean`),
    );
    expect((await run("runs", "ZZZZZZ")).stderr).toBe("longshore: There is no run ZZZZZZ.\n");
  });

  it("lists more runs than a page of the server has", async () => {
    const { run } = await setup();
    expect(await run("runs", "--limit", "5000")).toMatchObject({ code: 0, stdout: "No runs.\n" });
    expect((await run("definitions", "--limit", "5000")).code).toBe(0);
  });
});

describe("errors with --json", () => {
  it("are one JSON object on standard error", async () => {
    const { run } = await setup();
    const failing: [string[], object][] = [
      [["runs", "nope", "--json"], { code: "LONGSHORE_NOT_FOUND", message: "There is no run nope." }],
      [["run", "maen", "--json"], { code: "LONGSHORE_NOT_FOUND", message: expect.stringContaining("Did you mean") }],
      [["runs", "--json", "--lmit", "3"], { code: "LONGSHORE_BAD_INPUT", message: expect.stringContaining("unknown option '--lmit'") }],
      [["runs", "--json", "--on", "http://127.0.0.1:9"], { code: "LONGSHORE_UNREACHABLE", message: expect.any(String) }],
    ];
    for (const [args, error] of failing) {
      const { code, stdout, stderr } = await run(...args);
      expect({ code, stdout }, args.join(" ")).toEqual({ code: 2, stdout: "" });
      expect(JSON.parse(stderr), args.join(" ")).toEqual({ error });
    }
  });
});

describe("a run that failed", () => {
  it("is listed by its state, retried and run again", async () => {
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

describe("a run that waits for a signal", () => {
  const human = { name: "approve", taskReferenceName: "approve", type: "HUMAN" };
  const nap = { name: "nap", taskReferenceName: "nap", type: "WAIT", inputParameters: { duration: "2 hours" } };
  const definition = { name: "ask", version: 1, schemaVersion: 2, tasks: [human, nap], ownerEmail: "a@example.org", timeoutSeconds: 0 };

  it("shows what it waits for, receives the signal, and shows the signals that no step has received", async () => {
    const server = await startServer();
    const run = (...args: string[]) => longshore([...args, "--on", server.url]);
    const post = async (path: string, body: unknown) => {
      const headers = { "content-type": "application/json" };
      return (await fetch(`${server.url}/api${path}`, { method: "POST", headers, body: JSON.stringify(body) })).text();
    };
    await post("/metadata/workflow", definition);
    const id = await post("/workflow/ask", {});
    expect((await run("runs", id)).stdout).toMatch(/◇ approve +waits +waiting for signal "approve"\n/);
    const early = await run("signal", id, "later", '"a text"', "--key", "k");
    expect(early).toMatchObject({ code: 0, stdout: "later kept: no step waits for it yet; the run waits for approve\n" });
    const sent = await run("signal", id, "approve", '{"ok":true}', "--json");
    expect(JSON.parse(sent.stdout)).toMatchObject({ runId: id, number: 2, name: "approve", state: "taken", taskId: `${id}.0` });
    const shown = (await run("runs", id)).stdout;
    expect(shown).toMatch(/✓ approve +done.*\n +→ \{"ok":true\}\n◇ nap +sleeps +sleeping until (?:\d{4}-\d\d-\d\d )?\d\d:\d\d\n/);
    expect(shown).toMatch(/signals\n {2}later +kept for .* "a text"\n {2}approve +taken by approve\n/);
    expect(JSON.parse((await run("runs", id, "--json")).stdout)).toMatchObject({
      signals: { sent: 2, kept: 1, items: [{ name: "later" }, { name: "approve" }] },
      steps: [{ output: { ok: true } }, { waiting: { reason: "sleeping", signal: "nap" } }],
    });
    expect((await run("signal", id, "later", "7", "--key", "k")).stdout).toBe(
      "later kept: no step waits for it yet; the run waits for nap\n",
    );
    expect(await run("signal", id, "nap")).toMatchObject({ code: 0, stdout: "nap taken by a step that waited for it\n" });
    expect(await run("signal", id, "approve")).toMatchObject({
      code: 2,
      stderr: `longshore: Run ${id} has ended as succeeded: it takes no more signals.\n`,
    });
    expect((await run("signal", id, "approve", "{")).stderr).toMatch(/^longshore: the value is not JSON: /);
  });
});

describe("a restart of the server", () => {
  it("does not end commands that follow a run or its log", async () => {
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

describe("a waiting task", () => {
  it("is listed with the reason", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "gpu.yml"), "name: gpu\non: push\njobs:\n  train: { run: echo train, labels: [gpu] }\n");
    const server = await startServer(["--ephemeral", "--workflows", folder]);
    const run = (...args: string[]) => longshore([...args, "--on", server.url]);
    expect((await run("queues")).stdout).toContain("No lane has a task or a worker");
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
