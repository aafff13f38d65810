// The package as a user gets it: packed, installed into an empty folder, used. npm gets dependencies from its registry or its cache.

import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProgram } from "../support/cli.ts";

const packageFolder = fileURLToPath(new URL("../..", import.meta.url));
/** No server listens at this address, so a program that uses it as a proxy for anything except the registry fails. */
const deadProxy = "http://127.0.0.1:9";
const timeoutMs = 240_000;

const worker = `import { task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";
const greet = task("greet", ({ name }, ctx) => ctx.log("Hello, " + name));
await work({ tasks: [greet], on: workflowGraph(process.env.LONGSHORE_URL) });
`;
const definition = 'name: g\non: push\njobs:\n  g: { run: \'@greet {"name":"Ada"}\' }\n';
const embedded = `import { task, work } from "longshore";
import { serve } from "longshore/server";
const server = await serve({ data: "data", port: null });
const double = task("double", (n) => n * 2);
const running = await work({ tasks: [double], on: server });
console.log(await server.call(double, 21));
await running.stop();
await server.close();
`;

let place = "";
let tarball = "";
let packed: readonly { readonly path: string; readonly mode: number }[] = [];

beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), "longshore-package-"));
  // The package was built before the tests. Packing must not build it again while other tests use it.
  const said = await npm(["pack", "--ignore-scripts", "--json", "--pack-destination", place], { cwd: packageFolder });
  const [{ filename, files }] = JSON.parse(said) as [{ filename: string; files: typeof packed }];
  tarball = join(place, filename);
  packed = files;
}, timeoutMs);

afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("the packed package", () => {
  it("has the built files and its documents, and no sources or tests", () => {
    const paths = packed.map((file) => file.path);
    for (const path of [
      "LICENSE",
      "README.md",
      "package.json",
      "dist/index.js",
      "dist/index.d.ts",
      "bin/longshore.js",
      "dist/ui/manifest.json",
    ])
      expect(paths).toContain(path);
    expect(
      paths.filter(
        (path) =>
          !/^(LICENSE|README\.md|package\.json|bin\/longshore\.js|dist\/.+\.(js|d\.ts|js\.map)|dist\/ui\/(manifest\.json|[\w-]+\.(js|css|svg)\.(br|gz)))$/.test(
            path,
          ),
      ),
    ).toEqual([]);
    expect(paths.filter((path) => path.includes(".test."))).toEqual([]);
    expect((packed.find((file) => file.path === "bin/longshore.js")?.mode ?? 0) & 0o111).not.toBe(0);
  });

  it("names its source, is published with provenance, and accepts fixes of its dependencies", () => {
    const manifest = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"));
    const { homepage, bugs, repository, publishConfig } = manifest;
    expect(repository).toEqual({ type: "git", url: expect.stringMatching(/^git\+https:.+\.git$/), directory: "packages/longshore" });
    const address = repository.url.replace(/^git\+|\.git$/g, "");
    expect([homepage, bugs].filter((url: string) => !url.startsWith(address))).toEqual([]);
    expect(publishConfig).toEqual({ access: "public", provenance: true });
    // With an exact version, users would not get security fixes.
    const needed = { ...manifest.dependencies, ...manifest.optionalDependencies, ...manifest.peerDependencies };
    expect(Object.entries(needed).filter(([, range]) => !/^(\^|~|>=)/.test(range as string))).toEqual([]);
  });

  it(
    "works after a plain npm install that reaches only the registry",
    async () => {
      const folder = await install("plain", [], onlyTheRegistry());
      const lock = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
        packages: Record<string, { resolved?: string }>;
      };
      const origins = Object.values(lock.packages).flatMap(({ resolved }) =>
        resolved?.startsWith("http") ? [new URL(resolved).origin] : [],
      );
      expect(new Set(origins).size).toBe(1);
      await tryEverything(folder, process.env.PATH ?? "");
    },
    timeoutMs,
  );

  it(
    "works after npm install --ignore-scripts on a machine without compilers and Python",
    async () => {
      const path = bareFolder();
      const folder = await install("bare", ["--ignore-scripts"], { PATH: path });
      await tryEverything(folder, path);
    },
    timeoutMs,
  );
});

it(
  "npm links the command in the repository before anything is built, and it prints what to do",
  async () => {
    const folder = join(place, "clone");
    const workspace = join(folder, "packages/longshore");
    mkdirSync(workspace, { recursive: true });
    cpSync(join(packageFolder, "bin"), join(workspace, "bin"), { recursive: true });
    const { name, version, type, bin } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8"));
    writeFileSync(join(workspace, "package.json"), JSON.stringify({ name, version, type, bin }));
    writeFileSync(join(folder, "package.json"), '{ "private": true, "workspaces": ["packages/*"] }\n');
    await npm(["install", "--offline", "--no-audit", "--no-fund"], { cwd: folder });
    const { code, stderr } = await startProgram(join(folder, "node_modules/.bin/longshore"), ["--help"], { cwd: folder }).ended;
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("npm run build") });
  },
  timeoutMs,
);

async function install(name: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const folder = join(place, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  await npm(["install", tarball, "--prefer-offline", "--no-audit", "--no-fund", "--no-omit-lockfile-registry-resolved", ...args], {
    cwd: folder,
    env,
  });
  return folder;
}

/** The command, a server, a worker file, and a server inside a program. */
async function tryEverything(cwd: string, path: string): Promise<void> {
  const env = { ...npmEnvironment(), PATH: path };
  const command = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
    startProgram(join(cwd, "node_modules/.bin/longshore"), args, { cwd, env: { ...env, ...more } });
  const help = await startProgram("npx", ["longshore", "--help"], { cwd, env, group: true }).ended;
  expect(help.code, help.stderr).toBe(0);
  expect(help.stdout).toContain("Usage: longshore");

  writeFileSync(join(cwd, "worker.mjs"), worker);
  writeFileSync(join(cwd, "g.yml"), definition);
  const dev = command(["dev", "--port", "0"]);
  const [, url = ""] = await dev.printed(/serves on (http:\S+?),/);
  startProgram(process.execPath, ["worker.mjs"], { cwd, env: { ...env, LONGSHORE_URL: url } });
  expect((await command(["define", "g.yml"], { LONGSHORE_URL: url }).ended).stdout).toBe("g version 1\n");
  const run = await command(["run", "g", "--follow"], { LONGSHORE_URL: url }).ended;
  expect(run.code, run.stderr).toBe(0);
  expect(run.stdout).toContain("Hello, Ada");
  dev.kill("SIGTERM");
  await dev.ended;

  writeFileSync(join(cwd, "embedded.mjs"), embedded);
  const program = await startProgram(process.execPath, ["embedded.mjs"], { cwd, env }).ended;
  expect({ code: program.code, stdout: program.stdout }, program.stderr).toEqual({ code: 0, stdout: "42\n" });

  const traced = await command(["work", "--shell"], { STEPFLOW_OTLP_ENDPOINT: "http://127.0.0.1:4318" }).ended;
  expect(traced).toMatchObject({ code: 2, stderr: expect.stringMatching(/npm install @opentelemetry\/api@1 .*exporter-logs-otlp-http@/) });
}

async function npm(args: readonly string[], { cwd, env = {} }: { cwd: string; env?: Readonly<Record<string, string>> }): Promise<string> {
  const { stdout } = await promisify(execFile)("npm", args, { cwd, env: { ...npmEnvironment(), ...env }, timeout: timeoutMs });
  return stdout;
}

/** Without the variables that an outer `npm test` sets about its own package, which would confuse npm in another folder. */
function npmEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_)|npm_config_(local_prefix|global_prefix|workspace)|INIT_CWD)/i.test(name),
  );
  return Object.fromEntries(kept.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** When a proxy is the only way to the network, it stays, and only the lock file shows where packages came from. */
function onlyTheRegistry(): Record<string, string> {
  const hasProxy = Object.keys(process.env).some((name) => /^(npm_config_)?https?_proxy$/i.test(name));
  if (hasProxy) return {};
  const registry = new URL(execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8", env: npmEnvironment() }).trim());
  return { HTTP_PROXY: deadProxy, HTTPS_PROXY: deadProxy, NO_PROXY: registry.hostname };
}

/** A PATH with Node, npm and a shell, and nothing else. */
function bareFolder(): string {
  const folder = join(place, "bin");
  mkdirSync(folder);
  symlinkSync(process.execPath, join(folder, "node"));
  for (const program of ["npm", "npx", "sh"]) symlinkSync(realpathSync(findProgram(program)), join(folder, program));
  return folder;
}

function findProgram(name: string): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
  if (found === undefined) throw new Error(`${name} is not on the PATH`);
  return found;
}
