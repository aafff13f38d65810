// The processes of plugins: real programs, with and without faults.

import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { LongshoreError } from "../../../src/core/errors.ts";
import { TestClock } from "../../../src/testing/clock.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { type PluginWorld, pluginWorld, type WorldOptions } from "../../support/stepflow-plugins.ts";
import { untilElsewhere as until } from "../../support/until.ts";

/** An HTTP worker that returns its arguments and environment, and dies on request. */
const workerProgram = `
import { createServer } from "node:http";
const server = createServer((request, response) => {
  let text = "";
  request.on("data", (chunk) => (text += chunk));
  request.on("end", () => {
    if (request.method === "GET") return response.end("{}");
    const { id, method, params } = JSON.parse(text);
    if (id === undefined) return response.writeHead(202).end('""');
    if (params.component === "/die" && params.attempt === 1) process.kill(process.pid, "SIGKILL");
    const about = { pid: process.pid, args: process.argv.slice(2), env: process.env, cwd: process.cwd(), attempt: params.attempt };
    const result = method === "initialize" ? { server_protocol_version: 1 } : method === "components/list" ? { components: [] } : { output: about };
    response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
});
console.log("hello");
console.log('{"other": 1}');
console.error("to stderr");
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
`;

const yaml = (value: unknown) => JSON.stringify(value);

async function httpWorld(program: string, options: WorldOptions & { env?: Record<string, string>; more?: string } = {}) {
  const directory = realpathSync(temporaryFolder());
  writeFileSync(join(directory, "worker.mjs"), program);
  const plugin = `type: stepflow, command: ${yaml(process.execPath)}, args: ["worker.mjs", "--port", "\${PORT:-0}"], env: ${yaml(options.env ?? {})}`;
  const world = await pluginWorld(`plugins: { p: { ${plugin}, ${options.more ?? ""} } }\nroutes: { "/": [ { plugin: p } ] }\n`, {
    directory,
    ...options,
  });
  return { world, directory };
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

describe("a worker that is started and called", () => {
  it("is found by the port that it prints after other lines, and has its own folder and only its own environment", async () => {
    const { world, directory } = await httpWorld(workerProgram, { env: { COLOR: "red" }, environment: { PATH: "/usr/bin", SECRET: "s" } });
    const outcome = await world.run("/about");
    expect(outcome).toMatchObject({ output: { args: ["--port", "0"], cwd: directory, attempt: 1 } });
    const { env } = (outcome as { output: { env: Record<string, string> } }).output;
    expect(env.COLOR).toBe("red");
    expect(env.SECRET).toBeUndefined();
    expect(world.lines).toEqual(expect.arrayContaining(["info hello", 'info {"other": 1}', "info to stderr"]));
  });

  it("[S9-22] is restarted when it dies during a call, and the step succeeds in its second attempt", async () => {
    const { world } = await httpWorld(workerProgram);
    const before = (await world.run("/about")) as { output: { pid: number } };
    const outcome = (await world.run("/die", {}, { lost: 3 })) as { output: { pid: number; attempt: number } };
    expect(outcome.output.attempt).toBe(2);
    expect(outcome.output.pid).not.toBe(before.output.pid);
    expect(await world.logged(/^error .*cannot be called/)).toContain("killed by SIGKILL");
  });

  it("ends with the server, and so do the processes that it started", async () => {
    const program = `import { spawn } from "node:child_process";\nconst child = spawn("sleep", ["1000"], { stdio: "ignore" });\nprocess.on("SIGTERM", () => {});\nconsole.error("child " + child.pid);\n`;
    const { world } = await httpWorld(program + workerProgram, { env: { PATH: process.env.PATH ?? "" } });
    const { output } = (await world.run("/about")) as { output: { pid: number } };
    const line = await world.logged(/child \d+/);
    const clockless = world.close(0);
    // It ignores SIGTERM. The test need not wait for the grace period.
    process.kill(-output.pid, "SIGKILL");
    await clockless;
    const child = Number(/child (\d+)/.exec(line)?.[1]);
    await until(() => isGone(output.pid) && isGone(child));
  });

  it("that prints no port is reported with its output, and restarted", async () => {
    const { world } = await httpWorld('console.error("no module named flask"); process.exit(3);');
    expect(await world.logged(/cannot be called/)).toBe(
      'error The worker of the plugin p cannot be called: its worker ended before it printed {"port": N} on standard output (exit code 3); ' +
        "its last output:\nno module named flask",
    );
    await world.logged(/^debug .*cannot be called/);
  });

  it("that prints its port and dies is reported", async () => {
    const { world } = await httpWorld("console.log('{\"port\": 1}'); process.exit(0);");
    expect(await world.logged(/cannot be called/)).toContain("its worker ended before it was healthy (exit code 0)");
  });

  it("that never becomes healthy is reported after a time", async () => {
    const program = `import { createServer } from "node:http";
const server = createServer((request, response) => response.writeHead(500).end());
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));`;
    const { world } = await httpWorld(program, { more: "healthCheck: { path: /ready, timeoutMs: 50, retryDelayMs: 10 }" });
    expect(await world.logged(/cannot be called/)).toContain("its worker was not healthy within 50 ms (GET /ready: status 500)");
  });

  it("without a health page is still called", async () => {
    const { world } = await httpWorld(workerProgram.replace('return response.end("{}")', "return response.writeHead(404).end()"));
    expect(await world.run("/about")).toMatchObject({ output: { attempt: 1 } });
  });
});

describe("a program that does not exist", () => {
  const refusal = async (text: string, options?: WorldOptions): Promise<LongshoreError> => {
    try {
      await pluginWorld(text, options);
    } catch (error) {
      if (error instanceof LongshoreError) return error;
    }
    throw new Error("It was accepted.");
  };

  it("is refused at the start, with its name and the searched paths", async () => {
    const directory = temporaryFolder();
    mkdirSync(join(directory, "worker"));
    const options = { directory, environment: { PATH: "/nowhere:/neither" } };
    const missing = await refusal("plugins: { p: { type: grpc, queueName: q, command: nosuchprogram } }", options);
    expect(missing).toMatchObject({ code: "LONGSHORE_BAD_CONFIG", detail: { field: "plugins.p.command" } });
    expect(missing.message).toBe(
      "The program 'nosuchprogram' of the plugin p was not found: no folder of PATH (/nowhere:/neither) has it.",
    );
    const folder = await refusal("plugins: { p: { type: stepflow, command: ./worker } }", options);
    expect(folder.message).toContain(`${join(directory, "worker")} is not a program`);
  });

  it("cannot pull from a server without a port", async () => {
    const text = `plugins: { p: { type: grpc, queueName: q, command: ${yaml(process.execPath)} } }`;
    expect((await refusal(text, { url: null })).message).toContain("needs a server with a port");
  });
});

describe("the worker of a queue", () => {
  const told = (world: PluginWorld) => world.logged(/^info env /).then((line) => JSON.parse(line.slice(9)) as Record<string, string>);
  const program = `console.log("env " + JSON.stringify({ ...process.env, CWD: process.cwd() })); setInterval(() => {}, 1000);`;

  async function queueWorld(plugin: string, text: string, options: WorldOptions = {}) {
    const directory = realpathSync(temporaryFolder());
    writeFileSync(join(directory, "worker.mjs"), text);
    const command = `command: ${yaml(process.execPath)}, args: [worker.mjs], env: { EXTRA: "\${GREETING:-hi}" }`;
    const environment = { PATH: process.env.PATH, HOME: "/home/ada", LONGSHORE_TOKEN: "secret" };
    const world = await pluginWorld(`plugins: { p: { ${plugin}, ${command} } }`, { directory, environment, ...options });
    return { world, directory };
  }

  it("[S-QUEUE-18] over gRPC inherits the environment and gets the address of its queue", async () => {
    const { world, directory } = await queueWorld("type: grpc, queueName: fast", program, { url: "http://0.0.0.0:4500" });
    const env = await told(world);
    expect(env).toMatchObject({
      STEPFLOW_TRANSPORT: "grpc",
      STEPFLOW_TASKS_URL: "127.0.0.1:4500",
      STEPFLOW_QUEUE_NAME: "fast",
      STEPFLOW_BLOB_URL: "127.0.0.1:4500",
      HOME: "/home/ada",
      EXTRA: "hi",
      CWD: directory,
    });
    expect(env.LONGSHORE_TOKEN).toBeUndefined();
  });

  it("of a server with TLS gets addresses with its scheme", async () => {
    const { world } = await queueWorld("type: grpc, queueName: fast", program, { url: "https://0.0.0.0:4500" });
    const env = await told(world);
    expect(env).toMatchObject({ STEPFLOW_TASKS_URL: "https://127.0.0.1:4500", STEPFLOW_BLOB_URL: "https://127.0.0.1:4500" });
  });

  it("[S-QUEUE-18] over NATS gets server, stream and consumer", async () => {
    const { world } = await queueWorld('type: nats, url: "nats://127.0.0.1:4222", stream: TASKS', program);
    const env = await told(world);
    expect(env).toMatchObject({
      STEPFLOW_TRANSPORT: "nats",
      STEPFLOW_NATS_URL: "nats://127.0.0.1:4222",
      STEPFLOW_NATS_STREAM: "TASKS",
      STEPFLOW_NATS_CONSUMER: "stepflow-default",
      STEPFLOW_BLOB_URL: "127.0.0.1:4500",
    });
    expect(env.STEPFLOW_TASKS_URL).toBeUndefined();
  });

  it("is restarted when it ends, and reported with its output", async () => {
    const { world } = await queueWorld("type: grpc, queueName: q", 'console.error("cannot connect"); process.exit(1);');
    expect(await world.logged(/^error /)).toBe("error The worker of the plugin p has ended: exit code 1; its last output:\ncannot connect");
    await world.logged(/^debug .*has ended/);
  });

  it("is restarted when a task of its queue was lost and no worker has another task", async () => {
    const clock = new TestClock();
    const text = 'console.log("here"); setInterval(() => {}, 1000);';
    const { world } = await queueWorld("type: grpc, queueName: q", text, { clock });
    const starts = () => world.lines.filter((line) => line === "info here").length;
    const post = (id: string, claimMs: number) =>
      world.engine.store.board.post([{ id, step: id, lanes: [{ name: "stepflow:q", labels: [] }], input: "{}", policy: null, claimMs }]);
    await until(() => starts() === 1);
    // It has only just been started, so tasks that were lost before it could connect do not count.
    await post("early", 1_000);
    await clock.advance(1_000);
    expect(await world.engine.board.result("early")).toMatchObject({ state: "failed" });
    await clock.advance(60_000);
    await post("held", 100_000);
    const [held] = await world.engine.board.claim({
      reach: { names: ["stepflow:q"], labels: [] },
      serves: "stepflow:q",
      holder: "w",
      termMs: 60_000,
    });
    await post("while another works", 1_000);
    await clock.advance(1_000);
    expect(await world.engine.board.result("while another works")).toMatchObject({ state: "failed" });
    await world.engine.board.complete({ taskId: "held", grant: held?.grant as number }, "1");
    expect(world.lines.filter((line) => line.startsWith("error"))).toEqual([]);
    await post("lost", 1_000);
    await clock.advance(1_000);
    expect(await world.logged(/^error /)).toContain("p has ended: a task of its queue was lost; killed by SIGTERM");
    await clock.advance(1_000);
    await until(() => starts() === 2);
  });
});
