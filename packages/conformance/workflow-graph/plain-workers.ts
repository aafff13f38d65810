// Starts the small workers of workers/, which are independent of Longshore: each is a plain program in its language.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { PeerUnavailable, requireTool } from "../src/tools.ts";

export type PlainWorker = (stage: Stage, url: string, env?: Record<string, string>) => Child;

const source = (name: string): string => fileURLToPath(new URL(`./workers/${name}`, import.meta.url));

export const plainPython: PlainWorker = (stage, url, env) => python(stage, "plain.py", url, env);

export const impatientPython: PlainWorker = (stage, url, env) => python(stage, "impatient.py", url, env);

export const blockingNode: PlainWorker = (stage, url, env) =>
  stage.start(process.execPath, [source("blocking.mjs")], { name: "blocking.mjs", cwd: stage.folder(), env: { ...env, SERVER_URL: url } });

export const carelessGo: PlainWorker = (stage, url, env) => {
  requireTool("go");
  const folder = stage.folder();
  const binary = join(folder, "careless");
  // The program uses only the standard library, so the build needs no network. With these settings it does not try to use one.
  const build = spawnSync("go", ["build", "-o", binary, "."], {
    cwd: source("go"),
    encoding: "utf8",
    env: { ...process.env, GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod", GOPROXY: "off" },
  });
  if (build.status !== 0) throw new PeerUnavailable(`the Go worker does not build:\n${build.stderr}`);
  return stage.start(binary, [], { name: "careless (Go)", cwd: folder, env: { ...env, SERVER_URL: url } });
};

function python(stage: Stage, file: string, url: string, env: Record<string, string> = {}): Child {
  requireTool("python");
  return stage.start("python3", [source(file)], { name: file, cwd: stage.folder(), env: { ...env, SERVER_URL: url } });
}
