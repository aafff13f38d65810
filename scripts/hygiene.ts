// Rules about every tracked file that no other tool checks: no file names the machine on which it was written, or the host of a package
// registry; the titles of one test file are unique, so that a title identifies one test; no test is excluded; the lockfile is complete; texts
// use plain words; and the code that ARCHITECTURE.md names exists.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findLockfileProblems, type Lockfile } from "./lockfile-rule.ts";
import { findWordProblems } from "./plain-words.ts";
import { findPathProblems, findQuestionProblems } from "./question-table.ts";

// Larger tracked files are recordings or generated data, and reading them would only slow the check down.
const FILE_BYTES_MAX = 2_000_000;

export interface Place {
  /** The folder of the repository: its own path and its parent's must not be written down. */
  root: string;
  home: string;
}

/** Returns one sentence for each line that names this machine or a registry. */
export function findMachineTraces(path: string, text: string, place: Place): string[] {
  const folders = [place.root, place.home];
  // A clone in the temporary folder must not forbid every mention of that folder.
  const parent = dirname(place.root);
  if (parent !== "/" && !`${parent}/`.startsWith(`${tmpdir()}/`)) folders.push(parent);
  const traces: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const folder = folders.find((one) => line.includes(`${one}/`));
    if (folder !== undefined) traces.push(`${path}:${index + 1}: names a folder of this machine (${folder}/)`);
    if (REGISTRY.some((pattern) => pattern.test(line))) traces.push(`${path}:${index + 1}: names a package registry`);
  }
  return traces;
}

// Written in pieces, so that this file does not name what it forbids.
const REGISTRY = [
  /"resolved":\s*"https?:/,
  /(?:--registry|--index-url|index-url\s*=|registry\s*=)[\s=]*["']?https?:/,
  new RegExp(["registry\\.npmjs", "org"].join("\\.")),
  new RegExp(["files\\.pythonhosted", "org"].join("\\.")),
];

/** Returns one sentence for each test title used twice in a file and for each test that never runs. */
export function findTitleProblems(path: string, text: string): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const match of text.matchAll(/^\s*(?:it|test)(?:\.\w+(?:\([^\n]*?\))?)?\(\s*(["'`])((?:\\.|(?!\1)[^\\\n])*)\1/gm)) {
    const title = match[2] as string;
    if (seen.has(title)) problems.push(`${path}: two tests are called "${title}"`);
    seen.add(title);
  }
  for (const match of text.matchAll(/^\s*(?:it|test|describe)\.(skip|only|todo|fixme)\b/gm)) {
    problems.push(`${path}: .${match[1]} keeps tests from running`);
  }
  return problems;
}

/** What we write for readers. Recordings and the history keep their words, docs/api is made from comments, and the word list names the words. */
function isWritten(path: string): boolean {
  return /\.(?:md|ts)$/.test(path) && !/\/fixtures\/|^CHANGELOG\.md$|^docs\/api\/|^scripts\/plain-words/.test(path);
}

function checkRepository(root: string): string[] {
  const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0").filter(Boolean);
  const problems: string[] = [];
  for (const path of tracked) {
    const full = join(root, path);
    if (!existsSync(full) || statSync(full).size > FILE_BYTES_MAX) continue;
    const text = readFileSync(full, "utf8");
    if (text.includes("\0")) continue;
    problems.push(...findMachineTraces(path, text, { root, home: homedir() }));
    if (/\.test\.tsx?$/.test(path)) problems.push(...findTitleProblems(path, text));
    if (isWritten(path)) problems.push(...findWordProblems(path, text));
    if (basename(path) === "package-lock.json") problems.push(...findLockfileProblems(path, JSON.parse(text) as Lockfile));
    if (path === "ARCHITECTURE.md") {
      const folders = ["packages/longshore/src", "packages/longshore", "."].map((folder) => join(root, folder));
      problems.push(...findQuestionProblems(text, folders[0] as string), ...findPathProblems(text, folders));
    }
  }
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkRepository(fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, ""));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
