// The fragments of documents and of running servers are literal: a user of one of them must be able to use it as it is.

import { describe, expect, it } from "vitest";
import { LongshoreError } from "../../../../core/errors.ts";
import { ReservedLanes } from "../../../../engine/board/reserved-lanes.ts";
import { parseConfig } from "./parse.ts";
import { queuesOf } from "./queues.ts";
import { makeRouter } from "./router.ts";

const reserved = new ReservedLanes([]);

const parse = (text: string, environment: { [name: string]: string } = {}, file = "/etc/flows/stepflow-config.yml") =>
  parseConfig(text, { file, environment });
const parsed = (text: string, environment?: { [name: string]: string }) => parse(text, environment).config;
const plugin = (text: string, name = "p", environment?: { [name: string]: string }) => parsed(text, environment).plugins.get(name);
const warningsOf = (text: string) => parse(text).warnings.map(({ message, line, column }) => `${line}:${column} ${message}`);

function refusal(text: string, environment?: { [name: string]: string }, file?: string) {
  try {
    parse(text, environment, file);
  } catch (error) {
    if (error instanceof LongshoreError) return { code: error.code, message: error.message, ...error.detail };
  }
  throw new Error("It was accepted.");
}

const grpcFragment = `plugins:
  python:
    type: grpc
    queueName: python
    command: uv
    args: ["run", "stepflow_py", "--grpc"]
`;
const natsFragment = `plugins:
  python:
    type: nats
    natsUrl: "nats://localhost:4222"
    stream: STEPFLOW_TASKS
`;
const routingFragment = `plugins:
  workers:
    type: grpc
    queueName: default

routes:
  "/ml/{*component}":
    - plugin: workers
      params:
        queueName: gpu # Override: route to GPU worker pool
  "/python/{*component}":
    - plugin: workers # Uses default queue name
  "/{*component}":
    - plugin: builtin
`;
const peer13 = `plugins:
  builtin: { type: builtin }
  python:  { type: grpc, queueName: python }
routes:
  "/python":  [ { plugin: python } ]
  "/builtin": [ { plugin: builtin } ]
storageConfig: { type: inMemory }
`;

describe("plugins of a configuration", () => {
  it("[S-QUEUE-08] reads type, queueName, command and args of a gRPC plugin", () => {
    expect(parsed(grpcFragment).plugins.get("python")).toEqual({
      name: "python",
      type: "grpc",
      queue: "python",
      launch: { command: "uv", args: ["run", "stepflow_py", "--grpc"], env: {} },
      timeouts: { queueMs: 30_000, executionMs: null },
    });
  });

  it("[S-QUEUE-10] reads natsUrl and stream of a NATS plugin, and brings the consumer that is not named", () => {
    expect(parsed(natsFragment).plugins.get("python")).toEqual({
      name: "python",
      type: "nats",
      url: "nats://localhost:4222",
      stream: "STEPFLOW_TASKS",
      consumer: "stepflow-default",
      launch: null,
      timeouts: { queueMs: 30_000, executionMs: null },
    });
  });

  it("reads url and consumer of a NATS plugin, as the code has them, and queueName for its stream", () => {
    const text = "plugins: { p: { type: nats, url: 'nats://a:1,nats://b:2', queueName: GPU, consumer: pool } }";
    expect(plugin(text)).toMatchObject({ url: "nats://a:1,nats://b:2", stream: "GPU", consumer: "pool" });
  });

  it("reads the timeouts of a queue in seconds", () => {
    const text = "plugins: { p: { type: grpc, queueName: q, queueTimeoutSecs: 5, executionTimeoutSecs: 90 } }";
    expect(plugin(text)).toMatchObject({ timeouts: { queueMs: 5_000, executionMs: 90_000 } });
  });

  it("reads a worker that is called at an address", () => {
    expect(plugin('plugins: { p: { type: stepflow, url: "http://127.0.0.1:18000" } }')).toMatchObject({
      type: "stepflow",
      launch: null,
      url: new URL("http://127.0.0.1:18000"),
      health: { path: "/health", timeoutMs: 60_000, retryMs: 100 },
      callsMax: 100,
    });
  });

  it("reads a worker that is started and then called", () => {
    const text = `plugins:
  p:
    type: stepflow
    command: worker
    args: ["--port","0"]
    env: {PATH: "/usr/bin:/bin"}
    healthCheck: { path: /ready, timeoutMs: 5000, retryDelayMs: 50 }
    maxConcurrency: 3
`;
    expect(plugin(text)).toMatchObject({
      launch: { command: "worker", args: ["--port", "0"], env: { PATH: "/usr/bin:/bin" } },
      url: null,
      health: { path: "/ready", timeoutMs: 5_000, retryMs: 50 },
      callsMax: 3,
    });
  });

  it("reads a plugin of our own, for workers of every other protocol", () => {
    expect(plugin("plugins: { p: { type: longshore, queueTimeoutSecs: 3600 } }")).toMatchObject({ timeouts: { queueMs: 3_600_000 } });
  });

  it("reads the answers of a mock behind their inputs, written as a key or as the JSON of one", () => {
    const text = `plugins:
  p:
    type: mock
    components:
      /one_output:
        input_schema: { type: object, properties: { input: { type: string } } }
        output_schema: { type: object }
        behaviors:
          { input: "a" }:
            outcome: success
            result: {output: b}
          '{"input":"hello"}':
            outcome: failed
            error: {code: COMPONENT_FAILED, message: "no", data: {why: 1}}
          { input: null }: { error: broken }
      error:
        behaviors: { plain: { outcome: failed, error: { code: 8, message: error } } }
`;
    const mock = plugin(text);
    expect(mock?.type === "mock" && Object.fromEntries(mock.components)).toEqual({
      "/one_output": {
        inputSchema: { type: "object", properties: { input: { type: "string" } } },
        outputSchema: { type: "object" },
        behaviors: [
          { input: { input: "a" }, answer: { kind: "success", result: { output: "b" } } },
          { input: { input: "hello" }, answer: { kind: "failed", code: "COMPONENT_FAILED", message: "no", data: { why: 1 } } },
          { input: { input: null }, answer: { kind: "broken", message: "broken" } },
        ],
      },
      "/error": {
        inputSchema: { type: "object" },
        outputSchema: { type: "object" },
        behaviors: [{ input: "plain", answer: { kind: "failed", code: 8, message: "error", data: null } }],
      },
    });
  });

  it("is read from JSON as well, where a fault has its place", () => {
    const { config } = parse('{"plugins":{"p":{"type":"builtin"}},"routes":{"/":[{"plugin":"p"}]}}', {}, "/x/config.json");
    expect(config.plugins.get("p")).toEqual({ name: "p", type: "builtin" });
    expect(refusal('{\n "plugins": {,}}', {}, "/x/config.json")).toMatchObject({
      message: expect.stringContaining("not JSON"),
      line: 2,
      column: 14,
    });
  });
});

describe("variables in a configuration", () => {
  const args = (text: string, environment?: { [name: string]: string }) => {
    const found = plugin(`plugins: { p: { type: grpc, queueName: q, command: c, args: [${JSON.stringify(text)}] } }`, "p", environment);
    return found?.type === "grpc" ? found.launch?.args[0] : undefined;
  };

  it("are replaced by the server's environment, or by a default", () => {
    expect(args("--a=${A},${B:-two}", { A: "one" })).toBe("--a=one,two");
    expect(args("${B:-two}", { B: "" })).toBe("two");
    expect(args("${B}", { B: "" })).toBe("");
    expect(args("${B:-}")).toBe("");
    expect(args("$HOME $${A}", { A: "one" })).toBe("$HOME ${A}");
  });

  it("are replaced in addresses, names and environments too", () => {
    const text = `plugins:
  a: { type: stepflow, url: "http://127.0.0.1:\${TEST_PORT:-8080}" }
  b: { type: grpc, queueName: "\${Q}", command: "\${HOME}/worker", env: { KEY: "\${SECRET}" } }
`;
    const { plugins } = parsed(text, { Q: "fast", HOME: "/home/ada", SECRET: "s3" });
    expect(plugins.get("a")).toMatchObject({ url: new URL("http://127.0.0.1:8080") });
    expect(plugins.get("b")).toMatchObject({ queue: "fast", launch: { command: "/home/ada/worker", env: { KEY: "s3" } } });
  });

  it("that are not set are refused by name, with their place", () => {
    const text = 'plugins:\n  p:\n    type: grpc\n    queueName: "${QUEUE}"\n';
    expect(refusal(text)).toEqual({
      code: "LONGSHORE_BAD_CONFIG",
      message: "The variable QUEUE is not set.",
      field: "plugins.p.queueName",
      expected: "QUEUE in the environment of the server, or ${QUEUE:-default} here",
      line: 4,
      column: 16,
    });
    expect(refusal(text.replace("QUEUE", "1 x")).message).toBe("'${1 x}' names no variable.");
  });
});

describe("routes of a configuration", () => {
  it("[S-QUEUE-11, S-QUEUE-12] follow patterns, and lead to another queue by a nested parameter", () => {
    const config = parsed(routingFragment);
    const lane = (path: string) => {
      const found = makeRouter(config, reserved).route(path, {}, () => null);
      return "lanes" in found ? [found.lanes[0]?.name, found.remainder] : found;
    };
    expect(lane("/ml/train/deep")).toEqual(["stepflow:gpu", "/train/deep"]);
    expect(lane("/python/udf")).toEqual(["stepflow:default", "/udf"]);
    expect(lane("/eval")).toEqual(["stepflow-builtin", "/eval"]);
    expect(queuesOf(config).map(({ name }) => name)).toEqual(["default", "gpu"]);
  });

  it("[S-QUEUE-11] lead to another queue by a flat parameter too", () => {
    const text = `plugins: { w: { type: grpc, queueName: d }, n: { type: nats, url: "nats://h:1" } }
routes:
  "/ml": [ { plugin: w, queueName: gpu } ]
  "/nats": [ { plugin: n, stream: GPU_TASKS } ]
`;
    expect(queuesOf(parsed(text)).map(({ name, backend }) => [name, backend])).toEqual([
      ["d", "grpc"],
      ["gpu", "grpc"],
      ["GPU_TASKS", "nats"],
    ]);
  });

  it("are read as servers of 0.13 and of 0.12 have them", () => {
    for (const text of [peer13, peer13.replaceAll('python":', 'python/{*component}":').replaceAll('builtin":', 'builtin/{*component}":')]) {
      const routed = makeRouter(parsed(text), reserved).route("/python/echo", null, () => null);
      expect(routed).toMatchObject({ plugin: "python", remainder: "/echo", lanes: [{ name: "stepflow:python" }] });
    }
  });

  it("lead to the built-in components without a plugin for them, unless there is one of that name", () => {
    const routes = 'routes: { "/": [ { plugin: builtin } ] }\n';
    expect(parsed(routes).plugins.get("builtin")).toEqual({ name: "builtin", type: "builtin" });
    expect(plugin(`plugins: { builtin: { type: mock } }\n${routes}`, "builtin")).toMatchObject({ type: "mock" });
    expect(plugin('plugins: { p: { type: mock } }\nroutes: { "/": [ { plugin: p } ] }', "builtin")).toBeUndefined();
    for (const odd of ["routes: 1", 'routes: { "/": 1 }', 'routes: { "/": [ builtin ] }']) expect(refusal(odd).field).toMatch(/^routes/);
  });

  it("must name plugins that are there", () => {
    const text = 'plugins: { a: { type: builtin } }\nroutes:\n  "/x":\n    - plugin: b\n';
    expect(refusal(text)).toMatchObject({
      message: "There is no plugin 'b'.",
      field: "routes./x[0].plugin",
      expected: "one of builtin, a",
      line: 4,
      column: 15,
    });
  });

  it("must be paths, each once in any spelling", () => {
    const routes = (keys: string[]) =>
      `plugins: { a: { type: builtin } }\nroutes:\n${keys.map((key) => `  "${key}": [ { plugin: a } ]\n`).join("")}`;
    for (const key of ["python", "/a*", "/{*a}/b", "/{a}/{a}", "/a b", "/a//b"])
      expect(refusal(routes([key]))).toMatchObject({
        message: `'${key}' is not a path.`,
        line: 3,
        column: 3,
        expected: expect.stringContaining("/python"),
      });
    expect(refusal(routes(["/p", "/p/{*component}"])).message).toBe("'/p/{*component}' and '/p' are the same path.");
  });

  it("must have conditions that can be evaluated", () => {
    const text = 'plugins: { a: { type: builtin } }\nroutes: { "/": [ { plugin: a, conditions: [ { path: "$.a[b", value: 1 } ] } ] }';
    expect(refusal(text)).toMatchObject({
      message: `'$.a[b' is not a path: the bracket in "$.a[b" is not closed.`,
      field: "routes./[0].conditions[0].path",
    });
    expect(refusal(text.replace("[b", "").replace(", value: 1", "")).message).toBe("missing field `value`");
  });
});

describe("the rest of a configuration", () => {
  it("sets how a lost step is tried again, and where blobs are", () => {
    const text = `workingDirectory: work
retry: { transportMaxRetries: 5, backoff: { type: exponential, minDelayMs: 10, maxDelayMs: 100, factor: 3 } }
blobApi: { enabled: true, url: "http://blobs:1/api/v1/blobs", blobThreshold: 10 }
`;
    expect(parsed(text)).toMatchObject({
      directory: "/etc/flows/work",
      retry: { max: 5, backoff: { kind: "exponential", delayMs: 10, maxMs: 100, factor: 3 } },
      blobApi: { enabled: true, url: "http://blobs:1/api/v1/blobs", threshold: 10 },
    });
    expect(parsed("retry: { backoff: { type: constant, delayMs: 7 } }").retry).toEqual({ max: 3, backoff: { kind: "fixed", delayMs: 7 } });
  });

  it("has the defaults of the reference", () => {
    const { file: _, directory, plugins, routes, ...rest } = parsed("plugins: {}");
    expect(directory).toBe("/etc/flows");
    expect([plugins.size, routes.length]).toEqual([0, 0]);
    expect(rest).toEqual({
      retry: { max: 3, backoff: { kind: "fibonacci", delayMs: 1_000, maxMs: 10_000 } },
      blobApi: { enabled: true, url: null, threshold: 1_048_576 },
      typeCheck: false,
    });
  });

  it("warns of what this server does in its own way", () => {
    const text = `storageConfig: { type: sqlite, databaseUrl: "sqlite:data.db" }
leaseManager: { type: etcd, endpoints: ["http://etcd:2379"] }
recovery: { enabled: true, checkIntervalSecs: 3 }
`;
    expect(warningsOf(text)).toEqual([
      "1:16 Storage is not chosen here: this server keeps everything where --data or --store says.",
      "2:15 Leases by etcd are not used: this server has its own way to decide which server owns the data.",
      "3:11 Recovery has no settings here: a run always continues after a restart.",
    ]);
    expect(warningsOf("leaseManager: { type: noOp }")).toEqual([]);
  });

  it("warns of unknown keys and of plugins that nothing leads to", () => {
    expect(warningsOf("extra: 1\nplugins:\n  p: { type: builtin, color: red }\n")).toEqual([
      expect.stringMatching(/^1:1 The key 'extra' is not known here/),
      expect.stringMatching(/^3:23 The key 'color' is not known here/),
      "3:3 No route leads to the plugin p.",
    ]);
  });

  // The reference calls the tools of such a server as components; this server reports that it does not.
  it("[S9-24] leaves an MCP server out, which is not served, and refuses a route to it by name", () => {
    const text = "plugins:\n  tools: { type: mcp, command: npx, args: [x] }\n";
    expect(parsed(text).plugins.size).toBe(0);
    expect(warningsOf(text)).toEqual(["2:3 The plugin tools is left out: plugins of type mcp are not served."]);
    expect(refusal(`${text}routes: { "/tools": [ { plugin: tools } ] }\n`)).toMatchObject({
      message: "The plugin tools cannot be used: plugins of type mcp are not served.",
      line: 3,
    });
  });

  it.each([
    ["plugins: { p: { queueName: q } }", "plugins.p", "The plugin p has no type."],
    ["plugins: { p: { type: pigeon } }", "plugins.p.type", "There is no plugin type 'pigeon'."],
    ["plugins: { p: { type: grpc } }", "plugins.p", "missing field `queueName`"],
    ["plugins: { p: { type: grpc, queueName: 'a b' } }", "plugins.p.queueName", "'a b' cannot be the name of a queue."],
    ["plugins: { p: { type: grpc, queueName: q, queueTimeoutSecs: 0 } }", "plugins.p.queueTimeoutSecs", "It is 0."],
    ["plugins: { p: { type: grpc, queueName: q, command: '' } }", "plugins.p.command", "The command is empty."],
    ["plugins: { p: { type: grpc, queueName: q, command: c, args: x } }", "plugins.p.args", "This is not a list."],
    [
      "plugins: { p: { type: grpc, queueName: q, command: c, env: { 'A=B': x } } }",
      "plugins.p.env.A=B",
      "'A=B' cannot be the name of a variable.",
    ],
    ["plugins: { p: { type: nats } }", "plugins.p", "missing field `url`"],
    ["plugins: { p: { type: nats, url: 'nats://h:1', stream: 'A.B' } }", "plugins.p.stream", "'A.B' cannot be a name in JetStream."],
    [
      "plugins: { p: { type: nats, url: 'nats://h:1' } }\nroutes: { '/': [ { plugin: p } ] }",
      "routes./[0]",
      "Neither this rule nor the plugin p names a stream.",
    ],
    ["plugins: { p: { type: stepflow } }", "plugins.p", "The plugin p has neither command nor url."],
    ["plugins: { p: { type: stepflow, url: 'http://h', command: c } }", "plugins.p", "The plugin p has both command and url."],
    ["plugins: { p: { type: stepflow, url: 'file:///etc' } }", "plugins.p.url", "'file:///etc' is not an address."],
    ["plugins: { p: { type: stepflow, url: 'http://u:p@h' } }", "plugins.p.url", "The address has a user name or password."],
    ["plugins: { p: { type: stepflow, url: 'http://h', maxConcurrency: 0 } }", "plugins.p.maxConcurrency", "It is 0."],
    [
      "plugins: { p: { type: stepflow, command: c, healthCheck: { path: health } } }",
      "plugins.p.healthCheck.path",
      "'health' is not a path.",
    ],
    [
      "plugins: { p: { type: mock, components: { /a: { behaviors: { x: { outcome: maybe } } } } } }",
      'plugins.p.components./a.behaviors."x".outcome',
      "'maybe' is not an outcome.",
    ],
    ["retry: { backoff: { type: random } }", "retry.backoff.type", "There is no backoff 'random'."],
    ["blobApi: { enabled: 1 }", "blobApi.enabled", "'1' is not a boolean."],
    ["typeCheck: yes please", "typeCheck", "'yes please' is not a boolean."],
    ["routing: []", "routing", "`routing` is an older form that is not read any more."],
    ["- a", "", "This is not a map."],
    [
      "plugins: { a: { type: grpc, queueName: Q }, b: { type: nats, url: 'nats://h:1', stream: Q } }",
      "plugins",
      "The queue Q is served over nats by the plugin b, and over grpc by another.",
    ],
  ])("refuses %s", (text, field, message) => {
    expect(refusal(text)).toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      field,
      message,
      line: expect.any(Number),
      expected: expect.any(String),
    });
  });
});
