// Fetches the programs of Stepflow once from PyPI into the user's cache folder: orchestrators, whose program is inside a wheel, and Python
// SDKs. Fetches the newest release of every dialect.
import { join } from "node:path";
import { type CachedPeer, execute, fetchedFolder, fetchIntoCache } from "../src/cache.ts";

/** The name of each release in the tests, and what it speaks: Streamable HTTP in one of two dialects, or the queue protocol. */
export const releases = {
  "0.9": { speaks: "http", orchestrator: "0.9.0", sdk: "0.9.2", extra: "http" },
  "0.11": { speaks: "http", orchestrator: "0.11.1", sdk: "0.11.2", extra: "http" },
  "0.12": { speaks: "grpc", orchestrator: "0.12.0", sdk: "0.12.0", extra: "nats" },
  "0.13": { speaks: "grpc", orchestrator: "0.13.0", sdk: "0.13.0", extra: "nats" },
} as const;

export type Release = keyof typeof releases;

export const releaseNames = Object.keys(releases) as Release[];

/** One pip for all environments: a separate one for each would cost four seconds of processor time. */
const pip: CachedPeer = { folder: "stepflow-pip", tools: ["venv"], fetch: (folder) => execute("python3", ["-m", "venv", folder]) };

/** Downloads mostly wait for the network. */
const FETCHES_AT_ONCE = 3;

/** Fetches what is not in the cache yet, several at the same time. */
export async function fetchStepflow(say: (line: string) => void): Promise<void> {
  await fetchIntoCache(pip, say);
  const wanted = releaseNames.flatMap((release) => [sdkPeer(release), orchestratorPeer(release)]);
  const lane = async (): Promise<void> => {
    for (let peer = wanted.shift(); peer !== undefined; peer = wanted.shift()) await fetchIntoCache(peer, say);
  };
  await Promise.all(Array.from({ length: FETCHES_AT_ONCE }, lane));
}

/** The program of the real orchestrator. */
export function orchestratorProgram(release: Release): string {
  return join(fetchedFolder(orchestratorPeer(release)), "stepflow_orchestrator", "bin", "stepflow-server");
}

/** A Python that has `stepflow-py`. */
export function pythonWithSdk(release: Release): string {
  return join(fetchedFolder(sdkPeer(release)), "bin", "python");
}

function orchestratorPeer(release: Release): CachedPeer {
  const wheel = `stepflow-orchestrator==${releases[release].orchestrator}`;
  // Only the program in it is needed, so neither an environment nor Python dependencies are installed.
  return { folder: folderOf(wheel), tools: [], fetch: (folder) => pipInstall(["--no-deps", "--target", folder, wheel]) };
}

function sdkPeer(release: Release): CachedPeer {
  const { sdk, extra } = releases[release];
  return {
    folder: folderOf(`stepflow-py==${sdk}`),
    tools: [],
    async fetch(folder) {
      await execute("python3", ["-m", "venv", "--without-pip", folder]);
      await pipInstall([`stepflow-py[${extra}]==${sdk}`], ["--python", join(folder, "bin", "python")]);
    },
  };
}

const folderOf = (requirement: string): string => requirement.replace("==", "-");

function pipInstall(args: readonly string[], before: readonly string[] = []): Promise<void> {
  const python = join(fetchedFolder(pip), "bin", "python");
  return execute(python, ["-m", "pip", ...before, "install", "--quiet", "--disable-pip-version-check", ...args]);
}
