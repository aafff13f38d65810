// The dependency rule of the source tree, as data, and the tool that holds it: `npm run check` runs this file.
//
// Every file of packages/longshore/src belongs to one layer, found from its path. A layer may import itself and the layers
// listed for it, nothing else. Static, type-only and dynamic imports count alike: a type import is still knowledge of the other part.
// Tests next to the source may import anything, because a test may combine several layers.
//
// No file outside protocols/ names a protocol, not even in a comment: what is about one protocol belongs to its folder.
import { readdirSync, readFileSync } from "node:fs";
import { join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The folders of a protocol, and the layer of each. */
const PROTOCOL_FOLDERS: Readonly<Record<string, string>> = { wire: "wire", worker: "worker", server: "serving", dialect: "dialect" };
/** What both sides of a half agree on: files directly in protocols/, as light as a type. */
const PROTOCOL_PORTS: Readonly<Record<string, string>> = { "server-half.ts": "serving-port", "worker-half.ts": "worker-port" };
/** What the rest of the tree knows of protocols: the registry, and the value that each protocol gives it. */
const REGISTRY = ["registry", "serving-port", "worker-port"];

/** The one file that names every protocol. */
const REGISTRY_FILE = "protocols/index.ts";

/** The folder of our own protocol. The command line is a client of its API, and knows the shapes of it. */
const OURS = "longshore";
const OWN_WIRE = `protocols/${OURS}/wire/`;

/** What each layer may import besides itself. So a worker half never reaches the engine, and a server half never reaches the runner. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  core: [],
  net: ["core"],
  signature: ["core"],
  runner: ["core"],
  telemetry: ["core", "runner"],
  engine: ["core"],
  operations: ["core", "engine", "rows"],
  rows: ["core", "engine", "operations"],
  bus: ["core", "net"],
  wire: ["core", "net"],
  dialect: ["core", "wire", "engine", "serving-port"],
  api: ["core", "runner", "engine", "dialect"],
  client: ["core", "net", "wire", "api"],
  worker: ["core", "net", "wire", "runner", "bus", "api"],
  serving: ["core", "net", "wire", "engine", "bus", "dialect", "serving-port"],
  "serving-port": ["core", "net", "engine"],
  "worker-port": ["core", "runner"],
  registry: ["core", "wire", "worker", "serving", "dialect", "runner", "serving-port", "worker-port"],
  store: ["core", "rows", "cluster"],
  cluster: ["core", "net", "engine"],
  verify: ["core", "engine"],
  server: ["core", "verify", "net", "runner", "engine", "operations", "rows", "bus", "cluster", "api", "client", "store", ...REGISTRY],
  cli: ["core", "client", "net", "verify", "signature", "runner", "telemetry", "engine", "api", "server", "wire", ...REGISTRY],
  testing: ["core", "net", "runner", "engine", "api", "server", ...REGISTRY],
};

/** The port to a store, and the tables that are described for it: all that a store may know of the engine. */
const ROWS = /^engine\/(?:(?:rows|store|tx)\.ts|blob\/contents\.ts|tables\/)/;

/**
 * What takes part in operations and decides: a layer of its own inside engine/. Everything else in there are ports, pure decisions and
 * their types, which dialects and protocols may use; only the server puts together those that change rows.
 */
const OPERATIONS =
  /^engine\/(?:(?:commit|commit-errors|commit-job|commit-writer|committed-reads|cached-rows|amounts|request-marks|sliced-reads|store-state|stored-bytes|stored-reads|writables)\.ts|\w+\/(?:local|stored)-\w+\.ts|board\/(?:attempts|hand-outs|marks|ready-queues|run-tasks|task-end|task-life|unwritten-endings)\.ts|blob\/references\.ts|bus\/|log\/(?:tails|log-reads)\.ts|part\/(?:lives|reads)\.ts|run\/(?:counts|log-retention|remains|decisions|definitions|messages|open-tasks|records|records-ahead)\.ts)/;

/** The files directly in src/: the public API, which composes other layers. */
const API_FILES = new Set([
  "graph.ts",
  "index.ts",
  "module-exports.ts",
  "reference.ts",
  "schedule.ts",
  "transport.ts",
  "open-work.ts",
  "work.ts",
  "workflow.ts",
  "workflow-value.ts",
]);

/** Packages that only some layers may load, so that importing the worker side stays light. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "@photostructure/sqlite": ["store"],
  "node:sqlite": ["store"],
  pg: ["store"],
  commander: ["cli"],
  croner: ["engine"],
};

/** An import of the package by its own name, at the start of a line: examples in comments and indented texts are not meant. */
const OWN_NAME = /^(?:import|export|\})[^\n]*\bfrom\s*["']longshore(?:\/[^"']*)?["']/m;

/** Files outside protocols/ that name a protocol, and why they may. */
const NAMING: Readonly<Record<string, string>> = {
  "store/sqlite/schema.ts": "a migration finds the rows of one dialect in data files of earlier versions",
};

interface SourceFile {
  path: string;
  layer: string;
  /** Paths of our own files this file imports. */
  imports: string[];
}

/** Returns one sentence for each broken rule; an empty list means that the tree obeys. `sourceRoot` is a `src` folder. */
export function findImportViolations(sourceRoot: string): string[] {
  const violations: string[] = [];
  const files = new Map<string, SourceFile>();
  for (const path of listSourceFiles(sourceRoot)) {
    const layer = layerOf(path);
    if (layer === undefined) {
      violations.push(`${path}: no layer is known for this folder; add it to the table in scripts/import-rule.ts`);
      continue;
    }
    const source = readFileSync(join(sourceRoot, path), "utf8");
    const specifiers = findSpecifiers(source);
    const imports = specifiers.filter((text) => text.startsWith(".")).map((text) => posix.join(posix.dirname(path), text));
    files.set(path, { path, layer, imports });
    violations.push(...packageViolations(path, layer, specifiers));
    // The package's own name leads to the built files. Sample programs that are printed name it, so their files are left out.
    if (layer !== "cli" && posix.basename(path) !== "hints.ts" && OWN_NAME.test(source))
      violations.push(`${path}: imports longshore by its public name; use a relative path`);
  }
  if (files.size === 0) violations.push(`${sourceRoot}: no source files found, so nothing was checked`);
  for (const file of files.values()) violations.push(...edgeViolations(file));
  return violations;
}

/** Returns one sentence for each line outside protocols/ that names a protocol, in whatever spelling. Our own is no such name. */
export function findNamedProtocols(sourceRoot: string): string[] {
  const folders = readdirSync(join(sourceRoot, "protocols"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const names = folders.map(({ name }) => name).filter((name) => name !== OURS);
  if (names.length === 0) return [`${sourceRoot}: no protocols found, so nothing was checked`];
  const named = new RegExp(names.map((name) => name.split("-").join("[-_ ]?")).join("|"), "i");
  const violations: string[] = [];
  for (const path of listSourceFiles(sourceRoot)) {
    if (path.startsWith("protocols/")) continue;
    const found = readFileSync(join(sourceRoot, path), "utf8")
      .split("\n")
      .flatMap((line, at) =>
        named.test(line) ? [`${path}:${at + 1}: names a protocol (${named.exec(line)?.[0]}); its folder must bring this`] : [],
      );
    if (!Object.hasOwn(NAMING, path)) violations.push(...found);
    else if (found.length === 0) violations.push(`${path}: names no protocol; remove it from the list in scripts/import-rule.ts`);
  }
  return violations;
}

function listSourceFiles(sourceRoot: string): string[] {
  return readdirSync(sourceRoot, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => relative(sourceRoot, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}

function layerOf(path: string): string | undefined {
  const parts = path.split("/");
  const [folder] = parts;
  if (folder === undefined || parts.length === 1) return API_FILES.has(path) ? "api" : undefined;
  if (ROWS.test(path)) return "rows";
  if (OPERATIONS.test(path)) return "operations";
  if (folder === "protocols") return protocolLayer(parts);
  return Object.hasOwn(ALLOWED, folder) ? folder : undefined;
}

/** A file directly in protocols/ or in the folder of a protocol belongs to the registry, unless it is a port. */
function protocolLayer(parts: readonly string[]): string | undefined {
  const [, file = "", part = ""] = parts;
  if (parts.length === 2) return PROTOCOL_PORTS[file] ?? "registry";
  return parts.length === 3 ? "registry" : PROTOCOL_FOLDERS[part];
}

/** Finds the specifiers of `import`, `export ... from`, `import()`, `import("x").Type` and `require()`. */
export function findSpecifiers(source: string): string[] {
  const pattern = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\()\s*(["'`])([^"'`\n]+)\1/g;
  return [...source.matchAll(pattern)].map((match) => match[2] as string);
}

function packageViolations(path: string, layer: string, specifiers: readonly string[]): string[] {
  const violations: string[] = [];
  for (const specifier of specifiers) {
    const owners = PACKAGES[specifier];
    if (owners !== undefined && !owners.includes(layer)) {
      violations.push(`${path}: the ${layer} layer may not load ${specifier} (only ${owners.join(", ")} may)`);
    }
  }
  return violations;
}

function edgeViolations(file: SourceFile): string[] {
  const violations: string[] = [];
  for (const target of file.imports) {
    if (target.startsWith("..")) {
      if (posix.basename(target) !== "package.json") violations.push(`${file.path}: imports ${target}, which is outside the source folder`);
      continue;
    }
    const layer = layerOf(target);
    if (layer === undefined) continue;
    if (layer !== file.layer && !ALLOWED[file.layer]?.includes(layer)) {
      violations.push(`${file.path}: the ${file.layer} layer may not import ${target} (${layer})`);
    } else if (crossesFamily(file, target)) {
      violations.push(`${file.path}: may not import ${target}, which belongs to another protocol or store`);
    }
  }
  return violations;
}

/** True when one protocol, or one store, would know of another, or any other part of the tree of one protocol. */
function crossesFamily(file: SourceFile, target: string): boolean {
  const [fromFolder, fromName] = file.path.split("/");
  const [toFolder, toName] = target.split("/");
  // Whatever a protocol's folder holds, others reach it through the registry.
  if (fromFolder !== "protocols" && toFolder === "protocols" && file.layer !== "api")
    return target.split("/").length > 2 && !target.startsWith(OWN_WIRE);
  if (fromFolder !== toFolder || fromName === toName) return false;
  // A file directly in store/ or protocols/ is shared by its siblings, and the registry names every protocol.
  if (target.split("/").length === 2 || file.path === REGISTRY_FILE) return false;
  return fromFolder === "protocols" || fromFolder === "store";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const source = fileURLToPath(new URL("../packages/longshore/src", import.meta.url));
  const violations = [...findImportViolations(source), ...findNamedProtocols(source)];
  for (const violation of violations) console.error(violation);
  if (violations.length > 0) process.exitCode = 1;
}
