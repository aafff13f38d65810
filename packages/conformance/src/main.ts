// `npm run conformance`: fetches the peers, enters a private network and runs the suite there. Arguments are passed to the test runner, for
// example `npm run conformance -- rust-worker`. It first prints clearly what is missing; the tests that need it then fail.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { fetchRuntimes } from "../client/fetch.ts";
import { fetchConductor } from "../conductor/fetch.ts";
import { fetchFlowkit } from "../flowkit/fetch.ts";
import { fetchStepflow } from "../stepflow/fetch.ts";
import { crateNames, fetchPeers } from "./peers.ts";
import { runInPrivateNetwork } from "./private-network.ts";
import { runShards } from "./shards.ts";
import { requireTool, type ToolName } from "./tools.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
/** All tests that our server takes part in, with a cluster of two nodes as our server. */
const clusterFlag = "--cluster";
const say = (line: string): void => void process.stderr.write(`conformance: ${line}\n`);

for (const tool of ["python", "go", "nats"] satisfies ToolName[]) attempt(() => requireTool(tool));
// At the same time: one compiles, and the others wait for downloads.
const fetches = [fetchPeers(crateNames, say), fetchConductor(say), fetchStepflow(say), fetchFlowkit(say), fetchRuntimes(say)];
await Promise.all(fetches.map((fetching) => fetching.catch(complain)));

const vitest = fileURLToPath(new URL("../../../node_modules/vitest/vitest.mjs", import.meta.url));
const given = process.argv.slice(2);
const isCluster = given.includes(clusterFlag);
const projects = isCluster ? ["cluster"] : ["conformance", "cluster"];
if (isCluster) process.env.LONGSHORE_CLUSTER_CHAPTERS = "all";
const rest = given.filter((word) => word !== clusterFlag);
const suite = [process.execPath, vitest, "run", ...projects.flatMap((project) => ["--project", project]), ...rest];
if (attempt(() => requireTool("unshare"))) {
  // Chosen files run one after another, so that their output can be read while they run.
  process.exitCode = given.length === 0 ? await runShards(suite, root) : await runInPrivateNetwork(suite, { cwd: root });
} else {
  // Outside a private network the peers that listen everywhere refuse to start and their tests fail; the others still run.
  process.exitCode = spawnSync(suite[0] as string, suite.slice(1), { cwd: root, stdio: "inherit" }).status ?? 1;
}

function attempt(action: () => void): boolean {
  try {
    action();
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

function complain(error: unknown): void {
  say(error instanceof Error ? error.message : String(error));
}
