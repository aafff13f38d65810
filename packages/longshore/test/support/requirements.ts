// The requirements that tests prove: ids at the beginning of their titles, and the lists that explain those ids.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readDocument } from "./markdown.ts";

export interface Proof {
  readonly id: string;
  /** The test file, from the root of the repository. */
  readonly file: string;
}

const repository = fileURLToPath(new URL("../../../../", import.meta.url));

/** Every test file, also those that are not yet committed. */
export function testFiles(): string[] {
  const list = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "--", "*.test.ts"], { cwd: repository, encoding: "utf8" });
  return list.split("\n").filter((path) => path !== "" && existsSync(join(repository, path)));
}

/** Every id that a title begins with, once for each title. */
export function proofs(): Proof[] {
  return testFiles().flatMap((file) => {
    const titles = readDocument(file).matchAll(/["'`]\[([A-Z][A-Z0-9, -]+)\] /g);
    return [...titles].flatMap(([, ids = ""]) => ids.split(", ").map((id) => ({ id, file })));
  });
}

/** The ids that the tables of a document explain, in their order. */
export function explainedIn(path: string): string[] {
  return [...readDocument(path).matchAll(/^\| ([A-Z][A-Z0-9-]*\d+) +\|/gm)].map(([, found = ""]) => found);
}
