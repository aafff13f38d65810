// Fetches the peers (programs of other projects) once, into the user's cache folder, so that a fresh clone finds them again.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PeerUnavailable, requireTool } from "./tools.ts";

/** Programs of the Rust crate registry, with the version that the tests are written for. */
const crates = {
  "workflow-graph-server": { version: "1.2.11", root: "wg" },
  "workflow-graph-worker-sdk": { version: "1.2.11", root: "wg" },
} as const;

export type CrateName = keyof typeof crates;

export const crateNames = Object.keys(crates) as CrateName[];

/** A release build compiles about a hundred crates. One line for every 25 shows that it continues, and does not fill the terminal. */
const PROGRESS_EVERY_CRATES = 25;

/** The path of a program that has been fetched. Throws `PeerUnavailable` when it has not: nothing is fetched from inside a test. */
export function peerBinary(name: CrateName): string {
  if (!isInstalled(name)) {
    throw new PeerUnavailable(
      `MISSING PEER: ${name} ${crates[name].version} is not in ${peersFolder()}.\n  to get it: npm run conformance (it fetches what is missing first)`,
    );
  }
  return join(installRoot(name), "bin", name);
}

/** Builds every program that is not in the cache yet, one after the other. `say` receives lines about the progress. */
export async function fetchPeers(names: readonly CrateName[], say: (line: string) => void): Promise<void> {
  const missing = names.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  requireTool("cargo");
  mkdirSync(peersFolder(), { recursive: true });
  // One folder for all builds: the second program finds most of its dependencies compiled.
  const target = mkdtempSync(join(peersFolder(), "build-"));
  try {
    for (const name of missing) await cargoInstall(name, target, say);
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

async function cargoInstall(name: CrateName, target: string, say: (line: string) => void): Promise<void> {
  const { version } = crates[name];
  const args = ["install", name, "--version", version, "--root", installRoot(name)];
  const startedAt = Date.now();
  const elapsed = (): string => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  say(`building ${name} ${version} with cargo (some minutes, only the first time)`);

  const child = spawn("cargo", args, { env: { ...process.env, CARGO_TARGET_DIR: target }, stdio: ["ignore", "ignore", "pipe"] });
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const lastLines: string[] = [];
  let compiled = 0;
  for await (const line of createInterface({ input: child.stderr })) {
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
    if (!line.includes("Compiling")) continue;
    compiled += 1;
    if (compiled % PROGRESS_EVERY_CRATES === 0) say(`building ${name}: ${compiled} crates compiled, ${elapsed()}`);
  }
  const code = await exited;
  if (code !== 0) throw new PeerUnavailable(`cargo ${args.join(" ")} ended with code ${code}:\n${lastLines.join("\n")}`);
  say(`built ${name} ${version} in ${elapsed()}`);
}

/** Outside the project, so that a fresh clone finds what an earlier one built. */
export function peersFolder(): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return process.env.LONGSHORE_PEERS || join(cache, "longshore", "peers");
}

function installRoot(name: CrateName): string {
  return join(peersFolder(), crates[name].root);
}

/** Reads the version from the list that cargo keeps of installed programs. A program of another version is built again. */
function isInstalled(name: CrateName): boolean {
  const list = join(installRoot(name), ".crates.toml");
  const installed = existsSync(list) ? readFileSync(list, "utf8") : "";
  return installed.includes(`"${name} ${crates[name].version} `) && existsSync(join(installRoot(name), "bin", name));
}
