// Restate's server and its TypeScript SDK, as npm has them. They are fetched once into the user's cache folder, without their install
// scripts, and compared with the hashes below. They have 224 MB, so they are no dependency of the repository.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { freePort } from "./environment.ts";
import { type Running, start } from "./processes.ts";

const SERVER_VERSION = "1.7.12";
const SDK_VERSION = "1.17.2";
const PLATFORM = `@restatedev/restate-server-${process.platform}-${process.arch}`;

/** The hashes that npm's registry names for these versions. */
const INTEGRITY: Record<string, string> = {
  "@restatedev/restate-server-linux-x64": "sha512-URotJ1AIqaSCDkRMl4OrQfTLH+NYuOZb3ZsP7wxxiuAB6pncgPhTUYSvegTF5PTrAShnNyHNpju9kjf2O3QxoA==",
  "@restatedev/restate-server-linux-arm64":
    "sha512-aV7YxWvPhp88MjQtObGDhDCTwCBa68wwZOAMmJqDreO0auHYuSfOqabEx4I90coZsx3zShNusppbTPKprOa+dw==",
  "@restatedev/restate-sdk": "sha512-h1mZqFrkvzWNvTYVPA4WnlqwEzL0eg03//8RV0EGrovjePEDm43ec/PbiN1S7HOP6+6eAhEN7yiLFwUJG9A/yg==",
  "@restatedev/restate-sdk-core": "sha512-nq3QexkGkKpNjMHfqs7xhqOwtfO+EYXlp5Oe3L/ig1USocmyrif8EdYk2S9UUp+ybDLdwHb1MGlcXe98i/KM4w==",
};

export interface RestatePeer {
  readonly binary: string;
  /** The folder from which the SDK resolves. */
  readonly sdk: string;
}

/** Fetches what is missing. */
export function restatePeer(): RestatePeer {
  if (INTEGRITY[PLATFORM] === undefined)
    throw new Error(`there is no Restate server for ${process.platform} ${process.arch} here; it runs on Linux`);
  const cache = process.env.XDG_CACHE_HOME ?? join(os.homedir(), ".cache");
  const folder = join(cache, "longshore", "peers", `restate-${SERVER_VERSION}-sdk-${SDK_VERSION}`);
  const complete = join(folder, ".complete");
  if (!existsSync(complete)) {
    fetchInto(folder);
    // Last, so that a fetch that was cut off is begun again.
    writeFileSync(complete, "");
  }
  return { binary: join(folder, "node_modules", PLATFORM, "bin", "restate-server"), sdk: folder };
}

function fetchInto(folder: string): void {
  process.stderr.write(`fetching Restate ${SERVER_VERSION} and its SDK ${SDK_VERSION} into ${folder}\n`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const wanted = [`${PLATFORM}@${SERVER_VERSION}`, `@restatedev/restate-sdk@${SDK_VERSION}`];
  const args = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", ...wanted];
  const { status } = spawnSync("npm", args, { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error(`npm ${args.join(" ")} ended with ${status}`);
  const lock = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as { packages: Record<string, { integrity?: string }> };
  for (const [path, { integrity }] of Object.entries(lock.packages)) {
    const name = path.replace("node_modules/", "");
    if (name !== "" && integrity !== INTEGRITY[name])
      throw new Error(`${name} from npm has the hash ${integrity}, expected ${INTEGRITY[name] ?? "no such package"}`);
  }
}

export interface RestateServer {
  readonly url: string;
  readonly pid: number;
  /** Makes the handlers of a service known. */
  register(port: number): Promise<void>;
  stop(): Promise<void>;
}

const READY_MS_MAX = 60_000;
const ASK_EVERY_MS = 50;

/** Everything at its defaults, except that it listens on loopback only, sends no telemetry, and logs warnings only. */
export async function startRestate(folder: string, { binary }: RestatePeer): Promise<RestateServer> {
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
  const running = start(binary, ["--node-name", "n1", "--base-dir", folder], {
    cwd: folder,
    env: {
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
      RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}/`,
      RESTATE_LOG_FILTER: "warn",
      RESTATE_DISABLE_TELEMETRY: "true",
    },
  });
  await healthy([`http://127.0.0.1:${admin}/health`, `http://127.0.0.1:${ingress}/restate/health`], running);
  return { url: `http://127.0.0.1:${ingress}`, pid: running.pid, register: (port) => register(admin, port), stop: running.stop };
}

async function healthy(urls: readonly string[], running: Running): Promise<void> {
  const until = performance.now() + READY_MS_MAX;
  for (const url of urls) {
    for (;;) {
      const answer = await fetch(url).catch(() => undefined);
      await answer?.arrayBuffer();
      if (answer?.ok) break;
      if (performance.now() > until || running.child.exitCode !== null) throw new Error(`Restate does not answer at ${url}`);
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    }
  }
}

async function register(admin: number, port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
  });
  if (!answer.ok) throw new Error(`Restate refused the service: ${answer.status} ${(await answer.text()).slice(0, 500)}`);
  await answer.arrayBuffer();
}
