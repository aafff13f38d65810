// Run after `npm install` has changed package-lock.json: `npx tsx scripts/complete-lockfile.ts`.
//
// Packages with native code list one optional dependency per platform. A registry that mirrors only some platforms makes npm drop the
// others from the lockfile, and `npm ci` then refuses that lockfile everywhere. This writes the dropped entries back, pinned to the
// version the parent asks for and bound to their platform, so that npm fetches one only on a machine that can use it.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface LockedPackage {
  version?: string;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

export interface Lockfile {
  packages: Record<string, LockedPackage>;
}

/** Answers the names that were added; the given lockfile is changed. */
export function completeLockfile(lockfile: Lockfile): string[] {
  const added: string[] = [];
  for (const [parentPath, parent] of Object.entries(lockfile.packages)) {
    for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
      const platform = platformOf(name);
      const path = `node_modules/${name}`;
      // A range cannot be pinned without asking the registry; native parents always name one version.
      if (platform === undefined || !/^\d+\.\d+\.\d+/.test(version)) continue;
      if (lockfile.packages[path] !== undefined || lockfile.packages[`${parentPath}/${path}`] !== undefined) continue;
      lockfile.packages[path] = { version, ...(parent.dev ? { dev: true } : {}), optional: true, ...platform };
      added.push(name);
    }
  }
  const sorted = Object.entries(lockfile.packages).sort(([a], [b]) => (a < b ? -1 : 1));
  lockfile.packages = Object.fromEntries(sorted);
  return added;
}

const SYSTEMS = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const PROCESSORS = ["arm64", "arm", "x64", "ia32", "ppc64", "riscv64", "s390x", "loong64", "mips64el", "wasm32"];

/** Reads the platform from a name such as `@scope/binding-linux-x64-musl`; undefined when the name does not end in one. */
function platformOf(name: string): Pick<LockedPackage, "os" | "cpu" | "libc"> | undefined {
  const parts = name.split(/[-/]/);
  const cpu = PROCESSORS.find((one) => parts.includes(one));
  if (cpu === undefined) return undefined;
  if (cpu === "wasm32") return { cpu: [cpu] };
  const os = SYSTEMS.find((one) => parts.includes(one));
  if (os === undefined) return undefined;
  const suffix = parts.at(-1) ?? "";
  if (os !== "linux") return { cpu: [cpu], os: [os] };
  return { cpu: [cpu], os: [os], libc: [suffix.startsWith("musl") ? "musl" : "glibc"] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = new URL("../package-lock.json", import.meta.url);
  const lockfile = JSON.parse(readFileSync(path, "utf8")) as Lockfile;
  const added = completeLockfile(lockfile);
  if (added.length > 0) writeFileSync(path, `${JSON.stringify(lockfile, null, 2)}\n`);
  console.log(added.length === 0 ? "the lockfile is complete" : `added ${added.join(", ")}`);
}
