// `longshore work`: the files that it loads, the tasks that it runs, and its end.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { longshore, startLongshore, startServer, temporaryFolder } from "../support/cli.ts";
import { httpCollector } from "../support/collector.ts";

/** A server whose workflow `one` has a single job. */
async function serverWith(job: string) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "one.yml"), `name: one\non: push\njobs:\n  only: ${job}\n`);
  const server = await startServer(["--ephemeral", "--workflows", folder]);
  const options = { cwd: folder, env: { LONGSHORE_URL: server.url } };
  const follow = () => longshore(["run", "one", "--follow"], options);
  return { folder, server, options, follow };
}

describe("longshore work --shell", () => {
  it("without any file runs the shell commands of its labels", async () => {
    const { options, follow } = await serverWith("{ run: 'echo hello from $0', labels: [linux] }");
    const worker = startLongshore(["work", "--shell", "--labels", "linux,fast", "--slots", "2", "--worker-id", "w1"], options);
    await worker.printed(/working for .*: shell commands/);
    const { code, stdout } = await follow();
    expect(code).toBe(0);
    expect(stdout).toContain("hello from sh");
    expect((await longshore(["workers"], options)).stdout).toMatch(/w1 +idle +workflow-graph .* linux, fast/);
  });

  it("is required: without it, a shell command fails at once, and the error names the option", async () => {
    const { folder, options, follow } = await serverWith("{ run: echo no, retries: 5 }");
    writeFileSync(join(folder, "tasks.mjs"), 'import { task } from "longshore";\nexport default [task("greet", () => "hi")];\n');
    await startLongshore(["work", "tasks.mjs"], options).printed(/working for .*: greet/);
    const { code, stderr } = await follow();
    expect(code).toBe(1);
    expect(stderr).toMatch(/this worker runs none: start it with --shell/);
  });
});

it.each(["--token=secret", "--shell", "--labels=gpu", "--lease-ttl=5s", "--heartbeat=1s", "--log-flush=1s", "--cwd=."])(
  "longshore work --conductor refuses %s, which would have no effect",
  async (flag) => {
    const { code, stderr } = await longshore(["work", "tasks.mjs", "--conductor", "http://127.0.0.1:1", flag]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      new RegExp(`^(?:longshore: A token in --token .*\n)?longshore: ${flag.split("=")[0]} is not for Conductor: .*\\.\n$`),
    );
  },
);

it("longshore work reports its server only after the server has accepted it", async () => {
  const server = await startServer(["--ephemeral", "--token", "worker:0123456789abcdef"]);
  const options = { env: { LONGSHORE_URL: server.url } };
  const stranger = startLongshore(["work", "--shell", "--token", "fedcba9876543210"], options);
  await stranger.printed(/claim fails, trying on: .*401.*pass a token/);
  expect(stranger.text()).not.toContain("working for");
  await startLongshore(["work", "--shell", "--token", "0123456789abcdef"], options).printed(/working for .*: shell commands/);
});

it("longshore work exports its traces with the worker's name", async () => {
  const { folder, options, follow } = await serverWith("{ run: '@greet' }");
  writeFileSync(join(folder, "tasks.mjs"), 'import { task } from "longshore";\nexport default [task("greet", () => "hi")];\n');
  const collector = await httpCollector();
  const env = { ...options.env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint };
  const worker = startLongshore(["work", "tasks.mjs", "--worker-id", "crane"], { ...options, env });
  expect((await follow()).code).toBe(0);
  worker.kill("SIGTERM");
  expect((await worker.ended).code).toBe(0);
  expect(collector.spans.map(({ name, resource }) => [name, resource["service.name"]])).toEqual([["task.execute", "crane"]]);
});

describe("durable functions of longshore work", () => {
  const source = `import { task, workflow } from "longshore";
export const double = task("double", async (n) => n * 2);
export const twice = workflow("twice", async (w, n) => w.step(double, n));
`;

  it("run in the process of the worker's tasks", async () => {
    const { folder, options } = await serverWith("{ run: '@none' }");
    writeFileSync(join(folder, "app.mjs"), source);
    expect((await longshore(["define", "app.mjs"], options)).code).toBe(0);
    await startLongshore(["work", "app.mjs"], options).printed(/working for .*: twice, double/);
    const { code, stdout } = await longshore(["run", "twice", "--input", "21", "--follow"], options);
    expect(code).toBe(0);
    expect(stdout).toContain("42");
  });

  it("are refused at the start when the protocol does not support them", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "app.mjs"), source);
    const { code, stderr } = await longshore(["work", "app.mjs", "--conductor", "http://127.0.0.1:1/api"], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toMatch(/cannot run durable functions \(twice\): only a Longshore server can/);
  });
});

describe("the files of longshore work", () => {
  it("may export tasks by name, as default and in lists", async () => {
    const { folder, options, follow } = await serverWith(`{ run: '@c {"n":1}', labels: ["handler:c"] }`);
    writeFileSync(
      join(folder, "tasks.mjs"),
      'import { task } from "longshore";\nconst make = (name) => task(name, ({ n }, ctx) => ctx.log(name + n));\n' +
        'export const a = make("a"); export default make("b"); export const more = [make("c"), a, 7, null];\n',
    );
    await startLongshore(["work", "tasks.mjs"], options).printed(/working for .*: (a, b, c|b, a, c|a, c, b|b, c, a)\n/);
    const { code, stdout } = await follow();
    expect(code).toBe(0);
    expect(stdout).toContain("c1");
  });

  it("may be TypeScript when tsx is installed", async () => {
    const { folder, options, follow } = await serverWith(`{ run: '@typed {"n":20}', labels: ["handler:typed"] }`);
    writeFileSync(
      join(folder, "tasks.ts"),
      'import { task } from "longshore";\ninterface In { n: number }\n' +
        'export const typed = task("typed", ({ n }: In, ctx) => ctx.log("typed " + ((n as number) + 1)));\n',
    );
    // From the repository's folder, where tsx is a development dependency.
    const worker = startLongshore(["work", join(folder, "tasks.ts")], { env: options.env });
    await worker.printed(/working for .*: typed/);
    expect((await follow()).stdout).toContain("typed 21");
  });

  it("in TypeScript without tsx run when Node can strip types, and are otherwise refused with advice", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "tasks.mts"), 'import { task } from "longshore";\nexport const a = task("a", (n: number) => n);\n');
    const worker = startLongshore(["work", "tasks.mts", "--on", "http://127.0.0.1:9"], { cwd: folder });
    // No server listens at this address: a worker that tries to register has loaded its file.
    if ((process.features as { typescript?: unknown }).typescript) await worker.printed(/claim fails, trying on: .*workers\/register/);
    else await worker.printed(/tasks\.mts is TypeScript, which Node .* does not run by itself\. Run `npm install --save-dev tsx`/);
  });

  it("are reported as missing, broken or empty before the worker starts", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "broken.mjs"), "throw new Error('on line one');\n");
    writeFileSync(join(folder, "empty.mjs"), "export const x = 1;\n");
    const failing: [string, RegExp][] = [
      ["missing.mjs", /missing\.mjs does not exist/],
      ["broken.mjs", /broken\.mjs could not be loaded: Error: on line one\n.*broken\.mjs:1/],
      ["empty.mjs", /empty\.mjs exports neither tasks nor workflows/],
    ];
    for (const [file, message] of failing) {
      const { code, stderr } = await longshore(["work", file, "--on", "http://127.0.0.1:9"], { cwd: folder });
      expect(code, file).toBe(2);
      expect(stderr, file).toMatch(message);
    }
  });

  it("are required, except for shell commands", async () => {
    const { code, stderr } = await longshore(["work"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Name a file that exports tasks, or pass --shell");
  });
});

describe("the end of longshore work", () => {
  it("lets the running task finish on SIGTERM", async () => {
    const { folder, options } = await serverWith(`{ run: '@slow', labels: ["handler:slow"] }`);
    // The task ends after the test has seen that the worker drains.
    writeFileSync(
      join(folder, "tasks.mjs"),
      'import { existsSync } from "node:fs";\nimport { task } from "longshore";\n' +
        'export const slow = task("slow", async () => { console.log("slow begins"); while (!existsSync("go")) await new Promise((r) => setTimeout(r, 20)); });\n',
    );
    const worker = startLongshore(["work", "tasks.mjs"], options);
    const { stdout: id } = await longshore(["run", "one"], options);
    await worker.printed(/slow begins/);
    worker.kill("SIGTERM");
    await worker.printed(/SIGTERM: stopping; waiting for 1 running task\./);
    writeFileSync(join(folder, "go"), "");
    expect((await worker.ended).code).toBe(0);
    expect(JSON.parse((await longshore(["runs", "--json"], options)).stdout).items).toMatchObject([{ id: id.trim(), state: "succeeded" }]);
  });

  it("does not wait after a second signal", async () => {
    const { folder, options } = await serverWith(`{ run: '@stuck', labels: ["handler:stuck"] }`);
    writeFileSync(
      join(folder, "tasks.mjs"),
      'import { task } from "longshore";\n' +
        'export const stuck = task("stuck", (input, ctx) => new Promise((_, reject) => { console.log("stuck begins"); ctx.signal.addEventListener("abort", () => { console.log("stuck is aborted"); reject(ctx.signal.reason); }); }));\n',
    );
    const worker = startLongshore(["work", "tasks.mjs", "--drain", "10m"], options);
    await longshore(["run", "one"], options);
    await worker.printed(/stuck begins/);
    worker.kill("SIGINT");
    await worker.printed(/stopping/);
    worker.kill("SIGTERM");
    await worker.printed(/stuck is aborted/);
    expect((await worker.ended).signal).toBeNull();
  });
});
