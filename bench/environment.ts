// What a benchmark needs: a folder on a real disk, free ports, and peers. Missing peers are named.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import os from "node:os";
import { join } from "node:path";

// The magic number that statfs gives for a memory file system.
const TMPFS_MAGIC = 0x01021994;
const WORKFLOW_GRAPH_VERSION = "1.2.11";

/** Runs with a fresh folder and removes it. Set TMPDIR to measure another disk. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(os.tmpdir(), "longshore-bench-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Durability costs nothing on a memory file system, so a figure taken there would be false. */
export async function refuseMemoryDisk(): Promise<void> {
  const { type } = await statfs(os.tmpdir());
  if (type === TMPFS_MAGIC) throw new Error(`${os.tmpdir()} is a memory file system: set TMPDIR to a folder on a disk and run again`);
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === "string") throw new Error("no free port on 127.0.0.1");
  return address.port;
}

export function requireCommand(command: string, debianPackage: string): void {
  const found = (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, command)));
  if (!found) throw new Error(`${command} is missing; get it with: apt-get install ${debianPackage}`);
}

/** The real workflow-graph server, built once into the user's cache folder (about three minutes). */
export function workflowGraphServer(): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(os.homedir(), ".cache");
  const root = join(cache, "longshore", "peers", "wg");
  const binary = join(root, "bin", "workflow-graph-server");
  if (existsSync(binary)) return binary;
  requireCommand("cargo", "cargo");
  process.stderr.write(`building workflow-graph-server ${WORKFLOW_GRAPH_VERSION} into ${root}\n`);
  const args = ["install", "workflow-graph-server", "--version", WORKFLOW_GRAPH_VERSION, "--root", root];
  const built = spawnSync("cargo", args, { stdio: ["ignore", 2, 2] });
  if (built.status !== 0) throw new Error(`cargo ${args.join(" ")} ended with ${built.status}`);
  return binary;
}

const NAMESPACE_MARK = "LONGSHORE_BENCH_NAMESPACE";

/** Whether this is the copy of the benchmark inside the private network. */
export const isInside = (): boolean => process.env[NAMESPACE_MARK] === "1";

/**
 * The peer binds every address and has no option against it. So both servers and the client run in a network namespace that has only a
 * loopback device. Returns the exit code of the copy inside, or undefined when already inside.
 */
export function enterNamespace(): number | undefined {
  if (isInside()) return undefined;
  requireCommand("unshare", "util-linux");
  requireCommand("ip", "iproute2");
  const inside = ["-rn", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", process.execPath, ...process.argv.slice(1)];
  const result = spawnSync("unshare", inside, { stdio: "inherit", env: { ...process.env, [NAMESPACE_MARK]: "1" } });
  if (result.error) throw result.error;
  return result.status ?? 1;
}

export interface Machine {
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  readonly loadBefore: number;
}

export function describeMachine(): Machine {
  const cpus = os.cpus();
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " "),
    cpu: cpus[0]?.model ?? "unknown",
    cores: cpus.length,
    memoryGib: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()}`,
    node: process.version,
    loadBefore: Math.round((os.loadavg()[0] ?? 0) * 10) / 10,
  };
}
