// `longshore dev`: its output, its reports about waiting tasks, and the files that it runs. The workers of `longshore snippets` run with it.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, type TestContext } from "vitest";
import { longshore, type Running, startLongshore, startProgram, temporaryFolder } from "../support/cli.ts";
import { untilElsewhere } from "../support/until.ts";

interface Dev extends Running {
  readonly url: string;
  readonly folder: string;
  run(...args: string[]): ReturnType<typeof longshore>;
}

async function startDev(
  args: readonly string[] = [],
  files: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string>> = {},
): Promise<Dev> {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const running = startLongshore(["dev", "--port", "0", "--ephemeral", ...args], { cwd: folder, env });
  const [, url = ""] = await running.printed(/serves on (https?:\S+?),/);
  await running.printed(/Serving until Ctrl-C/);
  return { ...running, url, folder, run: (...more) => longshore([...more, "--on", url], { cwd: folder }) };
}

/** What `longshore snippets` prints for this server. */
async function snippetsFor(dev: Dev, protocol: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stdout } = await longshore(["snippets", protocol, "--on", dev.url], { cwd: dev.folder, env });
  expect(code).toBe(0);
  return stdout;
}

/** The program that is printed between a heading and the next comment. */
function printedBelow(text: string, heading: RegExp): string {
  const [, ...rest] = text.split(heading);
  return (rest[0] ?? "").split("Something for it to do")[0]?.trim() ?? "";
}

/** The tests may require only Node and npm. */
function skipWithoutPython(context: TestContext): void {
  if (spawnSync("python3", ["--version"]).status !== 0)
    context.skip("needs python3, which is not on the PATH; on Debian: apt-get install python3");
}

const greetYml = 'name: g\non: push\njobs:\n  g: { run: \'@greet {"name":"Ada"}\', labels: ["handler:greet"] }\n';
const shellYml = "name: s\non: push\njobs:\n  s: { run: echo by shell }\n";
const appOf = (word: string, steps = 1) => `import { graph, task } from "longshore";
export const greet = task("greet", ({ name }, ctx) => { ctx.log("${word}, " + name); return "${word}, " + name; });
export const greeting = graph("greeting", (g, input) => {
  let last = g.step(greet, input);
  for (let more = 1; more < ${steps}; more++) last = g.step(greet, input, { after: [last] });
  return last;
});
`;
const tasksOf = (word: string) =>
  `import { task } from "longshore";\nexport const greet = task("greet", ({ name }, ctx) => ctx.log("${word}, " + name));\n`;

describe("what dev prints", () => {
  it("names calls of a durable function that differ in each replay", async () => {
    const source = `import { workflow } from "longshore";
export const late = workflow("late", async (w) => {
  await w.sleep("1ms");
  return Date.now() - (await w.local("now", () => Date.now()));
});
`;
    const app = await startDev(["app.mjs"], { "app.mjs": source });
    expect((await app.run("run", "late", "--follow")).code).toBe(0);
    await app.printed(/warn: The function late calls Date\.now\(\) at app\.mjs:4:15: .* use w\.now\(\)\./);
    expect(app.text().match(/Date\.now/g)).toHaveLength(1);
  });

  it("fits on a screen, with and without a file", async () => {
    const plain = await startDev();
    expect(plain.stdout().split("\n").length).toBeLessThanOrEqual(12);
    expect(plain.stdout()).toMatch(/npx longshore dev app\.ts [\s\S]*npx longshore snippets --on http/);
    const app = await startDev(["app.mjs"], { "app.mjs": appOf("Hello") });
    expect(app.stdout().split("\n").length).toBeLessThanOrEqual(12);
    expect(app.stdout()).toMatch(/\napp\.mjs: workflow greeting; task greet\.\n[\s\S]*npx longshore run greeting --follow --on http/);
  });
});

describe("the workers of snippets", () => {
  it("run unchanged: TypeScript", async () => {
    const dev = await startDev(["--workflows", "."], { "g.yml": greetYml });
    writeFileSync(join(dev.folder, "worker.mjs"), printedBelow(await snippetsFor(dev, "workflow-graph"), /worker in TypeScript.*\n/));
    startProgram(process.execPath, ["worker.mjs"], { cwd: dev.folder });
    const { code } = await dev.run("run", "g", "--follow");
    expect(code).toBe(0);
  });

  it("run unchanged: Python", async (context) => {
    const dev = await startDev(["--workflows", "."], { "s.yml": shellYml });
    const script = printedBelow(await snippetsFor(dev, "workflow-graph"), /worker in Python.*\n/);
    expect(script).toMatch(/^python3 - <<'EOF'\n[\s\S]*\nEOF$/);
    skipWithoutPython(context);
    startProgram("sh", ["-c", `exec ${script}`], { cwd: dev.folder });
    const { code } = await dev.run("run", "s", "--follow");
    expect(code).toBe(0);
  });

  const secret = "operator-secret-0123456789";
  const startWithToken = async () => {
    const dev = await startDev(["--workflows", ".", "--token", secret], { "g.yml": greetYml, "s.yml": shellYml });
    return { dev, place: { cwd: dev.folder, env: { LONGSHORE_TOKEN: secret } } };
  };

  it("read their token from the environment when the server requires one, and the secret is not printed", async () => {
    const { dev, place } = await startWithToken();
    const printed = await snippetsFor(dev, "workflow-graph", place.env);
    writeFileSync(join(dev.folder, "worker.mjs"), printedBelow(printed, /worker in TypeScript.*\n/));
    startProgram(process.execPath, ["worker.mjs"], place);
    expect((await longshore(["run", "g", "--follow", "--on", dev.url], place)).code).toBe(0);
    expect(dev.text() + printed).not.toContain(secret);
  });

  it("also read their token from the environment in Python", async (context) => {
    skipWithoutPython(context);
    const { dev, place } = await startWithToken();
    const printed = await snippetsFor(dev, "workflow-graph", place.env);
    startProgram("sh", ["-c", `exec ${printedBelow(printed, /worker in Python.*\n/)}`], place);
    expect((await longshore(["run", "s", "--follow", "--on", dev.url], place)).code).toBe(0);
  });

  it("run unchanged for Conductor, with the printed command, with and without a token", async () => {
    for (const args of [[], ["--token", secret]]) {
      const dev = await startDev(args);
      const place = { cwd: dev.folder, env: { LONGSHORE_TOKEN: secret } };
      const printed = await snippetsFor(dev, "conductor", args.length === 0 ? {} : place.env);
      writeFileSync(join(dev.folder, "worker.mjs"), printedBelow(printed, /conductor worker in TypeScript.*\n/));
      startProgram(process.execPath, ["worker.mjs"], place);
      const [, curl = ""] = /\n(curl -s [\s\S]*?)\n\n$/.exec(printed) ?? [];
      const done = spawnSync("sh", ["-c", curl], { ...place, env: { ...process.env, ...place.env }, encoding: "utf8" });
      expect(JSON.parse(done.stdout)).toMatchObject({ status: "COMPLETED", output: { text: "Hello, Ada!" } });
    }
  });

  it("run unchanged for FlowKit, with the printed command, with and without a token", async () => {
    for (const args of [[], ["--token", secret]]) {
      const dev = await startDev(args);
      const place = { cwd: dev.folder, env: { LONGSHORE_TOKEN: secret } };
      const printed = await snippetsFor(dev, "flowkit", args.length === 0 ? {} : place.env);
      const [, curl = ""] = /\n(task=\$\(curl -s [\s\S]*?)\n\n$/.exec(printed) ?? [];
      const env = { ...process.env, ...place.env };
      const submitted = spawnSync("sh", ["-c", `${curl}; echo; echo $task`], { cwd: dev.folder, env, encoding: "utf8" });
      const task = submitted.stdout.trim().split("\n").at(-1) as string;
      await dev.printed(/waits count .*, or a FlowKit worker of the role count with FLOWKIT_URL=http/);
      writeFileSync(join(dev.folder, "worker.mjs"), printedBelow(printed, /flowkit worker in TypeScript.*\n/));
      startProgram(process.execPath, ["worker.mjs"], place);
      await dev.printed(/continues count/);
      const items = await untilElsewhere(async () => {
        const headers = { authorization: `Bearer ${secret}` };
        const answer = await fetch(`${dev.url}/flowkit/v1/tasks/${task}/artifacts?node=double`, { headers });
        const artifacts = (await answer.json()) as { items: { meta: unknown }[]; complete: unknown };
        return artifacts.complete !== null && artifacts.items;
      });
      expect(items).toMatchObject([{ meta: { twice: 2 } }, { meta: { twice: 4 } }, { meta: { twice: 6 } }]);
    }
  });

  it("run unchanged for Stepflow, with the printed command, with and without a token", async () => {
    for (const args of [[], ["--token", secret]]) {
      const dev = await startDev(args);
      const place = { cwd: dev.folder, env: { LONGSHORE_TOKEN: secret } };
      const printed = await snippetsFor(dev, "stepflow", args.length === 0 ? {} : place.env);
      writeFileSync(join(dev.folder, "worker.mjs"), printedBelow(printed, /stepflow worker in TypeScript.*\n/));
      startProgram(process.execPath, ["worker.mjs"], place);
      const [, flow = ""] = /cat > hello-flow\.yml <<'EOF'\n([\s\S]*?)\nEOF\n/.exec(printed) ?? [];
      writeFileSync(join(dev.folder, "hello-flow.yml"), `${flow}\n`);
      const cli = (...words: string[]) => longshore([...words, "--on", dev.url], place);
      expect(await cli("define", "hello-flow.yml")).toMatchObject({ stdout: "hello-flow version 1\n", stderr: "" });
      const { stdout } = await cli("run", "hello-flow", "--input", '{"name":"Ada"}', "--follow", "--json");
      expect(JSON.parse(stdout)).toMatchObject({ state: "succeeded", output: { text: "Hello, Ada!" } });
    }
  });

  it("are printed with definitions that can be run with the printed commands", async () => {
    const dev = await startDev();
    const printed = await snippetsFor(dev, "workflow-graph");
    for (const name of ["greeting", "hello"]) {
      const [, yaml = ""] = new RegExp(`cat > ${name}\\.yml <<'EOF'\\n([\\s\\S]*?)\\nEOF\\n`).exec(printed) ?? [];
      writeFileSync(join(dev.folder, `${name}.yml`), `${yaml}\n`);
      expect((await dev.run("define", `${name}.yml`)).stdout).toBe(`${name} version 1\n`);
      expect((await dev.run("run", name)).code).toBe(0);
    }
  });
});

it("snippets refuses an unknown protocol, and prints JSON for programs", async () => {
  const { code, stderr } = await longshore(["snippets", "temporal"]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/no programs for the protocol temporal, expected one of \S+, /),
  });
  const list = JSON.parse((await longshore(["snippets", "--json"])).stdout) as { protocol: string; code: string }[];
  expect(new Set(list.map(({ protocol }) => protocol)).size).toBeGreaterThan(3);
  for (const { code: program } of list) expect(program).toContain("127.0.0.1:4500");
});

describe("a task that waits", () => {
  it("is reported with the reason and the missing worker, and again when it continues", async () => {
    const dev = await startDev(["--workflows", "."], {
      "gpu.yml": "name: gpu\non: push\njobs:\n  train: { run: echo, labels: [gpu] }\n",
    });
    await dev.run("run", "gpu");
    await dev.printed(/waits train \(run \w+\): no worker is connected\. Start one: npx longshore work --shell --labels gpu --on http/);
    startLongshore(["work", "--shell", "--labels", "gpu", "--on", dev.url]);
    await dev.printed(/continues train, after /);
    expect(dev.text().match(/waits train/g)).toHaveLength(1);
  });

  it("for a named task is reported with the task that a worker must have", async () => {
    const dev = await startDev(["--workflows", "."], { "g.yml": greetYml });
    startLongshore(["work", "--shell", "--on", dev.url]);
    await dev.run("run", "g");
    await dev.printed(/waits g \(run \w+\): no .*worker.*where FILE exports a task named greet/);
  });
});

describe("a run that fails", () => {
  it("is reported with the reason and the command that shows it", async () => {
    const source = `import { workflow } from "longshore";
export const order = workflow("order", async () => { throw new Error("no ink"); });
`;
    const dev = await startDev(["app.mjs"], { "app.mjs": source });
    const { stdout } = await dev.run("run", "order");
    await dev.printed(new RegExp(`\\norder failed: .*no ink.* \\(longshore runs ${stdout.trim()} --on ${dev.url}\\)\\n`));
  });
});

describe("definition files with mistakes", () => {
  it("are reported and skipped, and the others are served", async () => {
    const dev = await startDev(["--workflows", "."], { "good.yml": shellYml, "bad.yml": "name: bad\non: push\njobs: 7\n" });
    expect(dev.text()).toMatch(/bad\.yml:3:\d+/);
    expect(dev.text()).toContain("Defined from .: good.");
  });
});

describe("dev FILE", () => {
  it("starts a server and a worker and defines workflows, and repeats this when the file changes", async () => {
    const dev = await startDev(["app.mjs"], { "app.mjs": appOf("Hello") });
    const input = ["--input", '{"name":"Ada"}'];
    expect((await dev.run("run", "greeting", ...input, "--follow")).stdout).toContain('"Hello, Ada"');
    writeFileSync(join(dev.folder, "app.mjs"), appOf("Goodbye", 2));
    await dev.printed(/app\.mjs changed: app\.mjs is loaded again\.\ngreeting has version 2\./);
    expect(dev.text()).not.toContain("SIGTERM");
    const { stdout } = await dev.run("run", "greeting", ...input, "--follow");
    expect(stdout).toMatch(/greet-2 done[\s\S]*"Goodbye, Ada"/);
  });

  it("stores the schedules of a file with their workflows, and reports those that are refused", async () => {
    const dev = await startDev(["app.mjs"], {
      "app.mjs": `import { schedule, task, workflow } from "longshore";
export const note = task("note", ({ at }) => console.log("tick " + at));
const often = workflow("often", async (w, input) => w.step(note, input));
export const fast = schedule("fast", { every: "1s", workflow: often, tickField: "at" });
export const never = schedule("never", { cron: "0 25 * * *", workflow: often });
`,
    });
    expect(dev.stdout()).toMatch(/app\.mjs: task note; schedules fast, never\.\nfast starts often at 20\S+Z\.\nnever is refused: .*25/);
    await dev.printed(/app \| tick 20\S+Z/);
  });

  it("accepts several files, and a file with only workflows", async () => {
    const dev = await startDev(["tasks.mjs", "flows.mjs"], {
      "tasks.mjs": tasksOf("Hello"),
      "flows.mjs":
        'import { graph } from "longshore";\nimport { greet } from "./tasks.mjs";\nexport default graph("hi", (g, input) => g.step(greet, input));\n',
    });
    expect(dev.stdout()).toMatch(/tasks\.mjs: task greet\.\nflows\.mjs: workflow hi\.\n/);
    expect((await dev.run("run", "hi", "--input", '{"name":"Ada"}', "--follow")).code).toBe(0);
    const alone = await startDev(["flows.mjs"], {
      "flows.mjs": 'import { graph } from "longshore";\nexport default graph("one", () => 1);\n',
    });
    expect((await alone.run("run", "one", "--follow")).stdout).toMatch(/\n1\n$/);
    expect(alone.text()).not.toContain("ended");
  });

  it("reports a workflow that the server refuses, and a mistake with its place", async () => {
    const dev = await startDev(["app.mjs"], { "app.mjs": 'export const x = { name: "x", source: { name: "x", steps: [{}] } };\n' });
    expect(dev.text()).toMatch(/x is refused: /);
    writeFileSync(join(dev.folder, "app.mjs"), "export const x = ;\n");
    await dev.printed(/app\.mjs:1:18: SyntaxError: Unexpected token ';'[\s\S]*app\.mjs ended with exit code 2/);
  });

  it("refuses a definition file because of its ending, and reports what to do", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "g.yml"), greetYml);
    const { code, stderr } = await longshore(["dev", "--port", "0", "--ephemeral", "g.yml"], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("name their folder: --workflows FOLDER") });
  });

  it("runs a worker for a file that exports tasks, and restarts it when the file changes", async () => {
    const dev = await startDev(["--workflows", ".", "tasks.mjs"], { "g.yml": greetYml, "tasks.mjs": tasksOf("Hello") });
    expect((await dev.run("run", "g", "--follow")).stdout).toContain("Hello, Ada");
    writeFileSync(join(dev.folder, "tasks.mjs"), tasksOf("Goodbye"));
    await dev.printed(/tasks\.mjs changed: tasks\.mjs is loaded again\./);
    expect((await dev.run("run", "g", "--follow")).stdout).toContain("Goodbye, Ada");
  });

  it("gives a step that a change interrupts to the new worker at once", async () => {
    const stuck = `import { task } from "longshore";
process.once("SIGTERM", () => process.exit(0));
export const greet = task("greet", () => { console.log("begun"); return new Promise(() => {}); });
`;
    const dev = await startDev(["--workflows", ".", "tasks.mjs"], { "g.yml": greetYml, "tasks.mjs": stuck });
    const { id } = JSON.parse((await dev.run("run", "g", "--json")).stdout) as { id: string };
    await dev.printed(/app \| begun/);
    writeFileSync(join(dev.folder, "tasks.mjs"), tasksOf("Goodbye"));
    await dev.printed(/tasks\.mjs is loaded again/);
    const api = `${dev.url}/api/longshore/v1/runs/${id}`;
    expect(((await (await fetch(`${api}?waitMs=30000`)).json()) as { state: string }).state).toBe("succeeded");
    const { items } = (await (await fetch(`${api}/tasks`)).json()) as { items: { id: string }[] };
    const attempts = await (await fetch(`${dev.url}/api/longshore/v1/tasks/${items[0]?.id}/attempts`)).json();
    expect(attempts).toMatchObject({ items: [{ error: "The process of its worker has ended." }, {}] });
  });

  it("runs a file that calls work() itself, with the server's URL in its environment", async () => {
    const program = `import { task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";
await work({ tasks: [task("greet", ({ name }, ctx) => ctx.log("by myself, " + name))], on: workflowGraph(process.env.LONGSHORE_URL) });
console.log("up");`;
    const dev = await startDev(["--workflows", ".", "own.mjs"], { "g.yml": greetYml, "own.mjs": program });
    await dev.printed(/app \| up/);
    expect((await dev.run("run", "g", "--follow")).stdout).toContain("by myself, Ada");
  });

  it("trusts the certificate that dev was given", async () => {
    const pem = (name: string) => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));
    const flags = ["--workflows", ".", "tasks.mjs", "--tls-cert", pem("cert"), "--tls-key", pem("key")];
    const dev = await startDev(flags, { "g.yml": greetYml, "tasks.mjs": tasksOf("Hello") });
    const env = { NODE_EXTRA_CA_CERTS: pem("cert") };
    const { stdout } = await longshore(["run", "g", "--follow", "--on", dev.url], { cwd: dev.folder, env });
    expect(stdout).toContain("Hello, Ada");
  });

  it("reports the mistake in a file that fails, and tries again when it is fixed", async () => {
    const dev = await startDev(["tasks.mjs"], { "tasks.mjs": "throw new Error('not yet');\n" });
    await dev.printed(/not yet[\s\S]*tasks\.mjs ended with exit code 2/);
    writeFileSync(join(dev.folder, "tasks.mjs"), "export const nothing = 1;\n");
    await dev.printed(/tasks\.mjs ended: it exports no task, workflow or schedule, and calls no work\(\)/);
    writeFileSync(join(dev.folder, "tasks.mjs"), tasksOf("Hello"));
    await dev.printed(/tasks\.mjs: task greet\./);
  });

  it("refuses a file that does not exist before it starts a server", async () => {
    const { code, stdout, stderr } = await longshore(["dev", "--port", "0", "--ephemeral", "missing.mjs"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("missing.mjs does not exist");
  });

  it("ends with dev, also when dev is killed", async () => {
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const dev = await startDev(["tasks.mjs"], {
        "tasks.mjs": `${tasksOf("Hello")}console.log("pid", process.pid);\nprocess.on("exit", () => {});\n`,
      });
      const [, pid] = await dev.printed(/pid (\d+)/);
      dev.kill(signal);
      expect((await dev.ended).code).toBe(signal === "SIGINT" ? 0 : null);
      await untilElsewhere(() => !isAlive(Number(pid)));
    }
  });
});

describe("tokens of dev", () => {
  it("are not passed on: the worker gets its own token, which cannot start runs, also when the environment has another", async () => {
    const secret = "kV3mQ0rT8xLw2ZpB";
    const look = `
      const headers = { authorization: "Bearer " + process.env.LONGSHORE_TOKEN, "content-type": "application/json" };
      const send = async (path) => (await fetch(process.env.LONGSHORE_URL + path, { method: "POST", headers, body: "{}" })).status;
      console.log("starts " + (await send("/api/longshore/v1/runs")) + ", claims " + (await send("/api/jobs/claim")));
      console.log("has it " + JSON.stringify(process.env).includes("${secret}"));`;
    const dev = await startDev(["--token", secret, "tasks.mjs"], { "tasks.mjs": look + tasksOf("Hello") }, { LONGSHORE_TOKEN: secret });
    const [, starts, claims] = await dev.printed(/starts (\d+), claims (\d+)/);
    expect({ starts, isLetIn: claims !== "401" && claims !== "403" }).toEqual({ starts: "403", isLetIn: true });
    expect((await dev.printed(/has it (\w+)/))[1]).toBe("false");
  });

  it("allow the worker that dev runs", async () => {
    const secret = "kV3mQ0rT8xLw2ZpB";
    const dev = await startDev(["--workflows", ".", "--token", secret, "tasks.mjs"], {
      "g.yml": greetYml,
      "tasks.mjs": tasksOf("Hello"),
    });
    const { code } = await dev.run("run", "g", "--follow", "--token", secret);
    expect(code).toBe(0);
    expect(dev.text()).not.toContain(secret);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
