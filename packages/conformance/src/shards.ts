// Runs the whole suite in shards at the same time. Most tests wait for the leases and polls of foreign programs, and each shard has its own
// private network. So two shards disturb each other as little as two machines would.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { runInPrivateNetwork } from "./private-network.ts";

const SHARDS = 2;
const BUILD = fileURLToPath(new URL("../../../scripts/build.mjs", import.meta.url));
const COUNTS = /^(\d+) passed, (\d+) failed$/gm;

/** Runs a command of the test runner once for each shard, prints what each wrote, then the sum of their counts. Returns the exit code. */
export async function runShards(suite: readonly string[], cwd: string): Promise<number> {
  // Once for all shards: two builds at the same time would write the same files.
  if (spawnSync(process.execPath, [BUILD], { cwd, stdio: "inherit" }).status !== 0) return 1;
  const shards = await Promise.all(Array.from({ length: SHARDS }, (_, index) => runShard(suite, cwd, index + 1)));
  const { passed, failed } = sumOfCounts(shards.map((shard) => shard.text));
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return Math.max(...shards.map((shard) => shard.code));
}

async function runShard(suite: readonly string[], cwd: string, shard: number): Promise<{ code: number; text: string }> {
  let text = "";
  const code = await runInPrivateNetwork([...suite, `--shard=${shard}/${SHARDS}`], {
    cwd,
    env: { ...process.env, LONGSHORE_BUILT: "1" },
    stdio: ["inherit", "pipe", "inherit"],
    onOutput: (piece) => {
      text += piece;
    },
  });
  process.stdout.write(`conformance: shard ${shard} of ${SHARDS}\n${text}`);
  return { code, text };
}

/** When the output has no counts, the shard has crashed. This counts as one failure. */
export function sumOfCounts(texts: readonly string[]): { passed: number; failed: number } {
  const sum = { passed: 0, failed: 0 };
  for (const text of texts) {
    const last = [...text.matchAll(COUNTS)].at(-1);
    sum.passed += Number(last?.[1] ?? 0);
    sum.failed += Number(last?.[2] ?? 1);
  }
  return sum;
}
