// `npm run without -- [--types] [NAME ...]`: shows that no protocol is needed by anything but itself. In a copy of the tree it removes one
// protocol: its lines of the registry, its folder, and the tests and programs that are about it. Then the type check and the unit tests
// of the rest must pass. Without names it does so for each protocol in turn; with --types it runs no tests, which `npm run check` does.
//
// There is one copy: what was removed is put back before the next turn, and the compiler looks again only at what changed.
// Our own protocol is not among them: `graph()` of the public API is its dialect.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { findSpecifiers } from "./import-rule.ts";

const PROTOCOLS = "packages/longshore/src/protocols";
const OURS = "longshore";
/** Where installed packages are; the copy links to them. */
const MODULES = ["node_modules", "packages/longshore/node_modules", "packages/conformance/node_modules", "bench/node_modules"];
/** Source that must do without the protocol; everything else may be about it. */
const isSource = (path: string) => path.startsWith("packages/longshore/src/") && !path.endsWith(".test.ts");

/** The names of the protocols that a registry lists, by the values that it imports. */
export function listedIn(registry: string): string[] {
  return [...registry.matchAll(/^import \{ \w+ \} from "\.\/([\w-]+)\/protocol\.ts";$/gm)].map(([, name]) => name as string);
}

/** The registry without the lines of one protocol: what it imports from there, and each line that uses something of it. */
export function withoutLines(registry: string, name: string): string {
  const imports = new RegExp(`^import (?:type )?\\{ ([^}]+) \\} from "\\./${name}/[^"]+";$`);
  const imported = registry.split("\n").flatMap((line) => imports.exec(line)?.[1]?.split(", ") ?? []);
  if (imported.length === 0) throw new Error(`${PROTOCOLS}/index.ts imports nothing from ./${name}/.`);
  const uses = new RegExp(`\\b(?:${imported.join("|")})\\b`);
  return registry
    .split("\n")
    .filter((line) => !uses.test(line))
    .join("\n");
}

/** The files outside the source that import something of the protocol, or something else that does. */
export function aboutIt(files: ReadonlyMap<string, string>, name: string): string[] {
  const gone = new Set([...files.keys()].filter((path) => path.startsWith(`${PROTOCOLS}/${name}/`)));
  const publicName = new RegExp(`^longshore/${name}(?:/|$)`);
  const candidates = [...files.keys()].filter((path) => !gone.has(path) && !isSource(path));
  for (let before = -1; before < gone.size; ) {
    before = gone.size;
    for (const path of candidates) {
      const reaches = findSpecifiers(files.get(path) as string).some(
        (text) => publicName.test(text) || (text.startsWith(".") && gone.has(posix.join(posix.dirname(path), text))),
      );
      if (reaches) gone.add(path);
    }
  }
  return [...gone];
}

/** The tests that name the protocol: some of these use its options or expect its texts. */
export function testsNaming(files: ReadonlyMap<string, string>, name: string): string[] {
  const named = new RegExp(name.replace("-", "-?"), "i");
  return [...files].filter(([path, text]) => path.endsWith(".test.ts") && named.test(text)).map(([path]) => path);
}

function copyTree(root: string, to: string): Map<string, string> {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  const files = new Map<string, string>();
  for (const path of listed.split("\n")) {
    // A file that was removed and not yet committed is still listed.
    if (path === "" || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(to, path)), { recursive: true });
    cpSync(join(root, path), join(to, path));
    if (/\.m?ts$/.test(path)) files.set(path, readFileSync(join(root, path), "utf8"));
  }
  for (const path of MODULES) if (existsSync(join(root, path))) symlinkSync(join(root, path), join(to, path));
  return files;
}

/** A copy of the tree, from which one protocol at a time is removed. */
class Copy {
  readonly #root: string;
  readonly #folder: string;
  readonly #files: Map<string, string>;

  constructor(root: string) {
    this.#root = root;
    this.#folder = mkdtempSync(join(tmpdir(), "longshore-without-"));
    this.#files = copyTree(root, this.#folder);
  }

  /** True when the rest holds without it. */
  holdsWithout(name: string, withTests: boolean): boolean {
    const registry = join(this.#folder, PROTOCOLS, "index.ts");
    const whole = readFileSync(registry, "utf8");
    const removed = new Set([...aboutIt(this.#files, name), ...testsNaming(this.#files, name)]);
    try {
      writeFileSync(registry, withoutLines(whole, name));
      for (const path of removed) rmSync(join(this.#folder, path));
      console.log(`-- without ${name}: types, ${this.#files.size - removed.size} of ${this.#files.size} files left`);
      if (!this.#run("tsc", ["-p", "tsconfig.json", "--incremental", "--tsBuildInfoFile", ".tsbuildinfo"])) return false;
      if (!withTests) return true;
      console.log(`-- without ${name}: unit tests`);
      return this.#run("vitest", ["run", "--project", "unit"]);
    } finally {
      writeFileSync(registry, whole);
      for (const path of removed) writeFileSync(join(this.#folder, path), this.#files.get(path) as string);
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #run(program: string, args: readonly string[]): boolean {
    const env = { ...process.env, PATH: `${join(this.#root, "node_modules/.bin")}:${process.env.PATH}` };
    return spawnSync(program, args, { cwd: this.#folder, env, stdio: "inherit" }).status === 0;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const known = listedIn(readFileSync(join(root, PROTOCOLS, "index.ts"), "utf8")).filter((name) => name !== OURS);
  const given = process.argv.slice(2);
  const named = given.filter((word) => word !== "--types");
  const unknown = named.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    console.error(`no such protocol: ${unknown.join(", ")}; the protocols are ${known.join(", ")}`);
    process.exit(2);
  }
  const tried = named.length > 0 ? named : known;
  const copy = new Copy(root);
  let failed: string[];
  try {
    failed = tried.filter((name) => !copy.holdsWithout(name, !given.includes("--types")));
  } finally {
    copy.remove();
  }
  console.log(`${tried.length - failed.length} passed, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(", ")}` : ""}`);
  if (failed.length > 0) process.exitCode = 1;
}
