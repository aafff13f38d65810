// `npm run check`: everything that must hold before a change is accepted, except the tests. Runs the steps in order, prints how long each
// took, and stops at the first that fails. Names of steps run only those: `npm run check -- types unused`.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

interface Step {
  name: string;
  says: string;
  command: readonly string[];
  /** Folder below the repository. */
  cwd?: string;
}

// The linter colours its output even when it is piped into a file.
const COLORS = process.stdout.isTTY ? "force" : "off";

const STEPS: readonly Step[] = [
  { name: "lint", says: "format and lint", command: ["biome", "ci", "--error-on-warnings", `--colors=${COLORS}`, "."] },
  { name: "types", says: "types of source, tests and tools", command: ["tsc", "-p", "tsconfig.json"] },
  { name: "pages", says: "types of the dashboard", command: ["tsc", "-p", "packages/dashboard/tsconfig.json"] },
  { name: "imports", says: "the import rule of the layers", command: ["tsx", "scripts/import-rule.ts"] },
  { name: "without", says: "types without each protocol in turn", command: ["tsx", "scripts/without-protocol.ts", "--types"] },
  {
    name: "hygiene",
    says: "machine paths, registry hosts, test titles, lockfile, plain words, ARCHITECTURE.md",
    command: ["tsx", "scripts/hygiene.ts"],
  },
  { name: "unused", says: "unused files, exports and dependencies", command: ["knip", "--no-progress"] },
  { name: "build", says: "the published package compiles", command: ["node", "scripts/build.mjs"] },
  { name: "api", says: "docs/api is up to date, every export has a comment", command: ["tsx", "scripts/api-reference.ts", "--check"] },
  {
    name: "package",
    says: "package.json and files of the tarball",
    command: ["publint", "--strict", "--pack", "npm"],
    cwd: "packages/longshore",
  },
  {
    name: "exports",
    says: "types resolve through every export",
    command: ["attw", "--pack", ".", "--profile", "esm-only", "--quiet"],
    cwd: "packages/longshore",
  },
  { name: "docs", says: "code blocks of every document run", command: ["tsx", "scripts/docs-blocks.ts"] },
];

const root = fileURLToPath(new URL("..", import.meta.url));

function runStep({ command, cwd = "." }: Step): boolean {
  const [program = "", ...args] = command;
  const env = { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` };
  return spawnSync(program, args, { cwd: `${root}${cwd}`, env, stdio: "inherit" }).status === 0;
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !STEPS.some((step) => step.name === name));
if (unknown.length > 0) {
  console.error(`no such step: ${unknown.join(", ")}; the steps are ${STEPS.map((step) => step.name).join(", ")}`);
  process.exit(2);
}

let passed = 0;
for (const step of STEPS) {
  if (wanted.length > 0 && !wanted.includes(step.name)) continue;
  console.log(`-- ${step.name}: ${step.says}`);
  const started = performance.now();
  const ok = runStep(step);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (!ok) {
    console.error(`-- ${step.name} FAILED after ${seconds} s`);
    console.log(`${passed} passed, 1 failed`);
    process.exit(1);
  }
  console.log(`-- ${step.name} ok, ${seconds} s`);
  passed += 1;
}
console.log(`${passed} passed, 0 failed`);
