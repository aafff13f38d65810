// What the lockfile must hold: every package from a registry with the hash of its content, so that no mirror can hand out something else;
// no registry's address, so that any mirror may serve it; and every platform that a package with native code lists. A registry that
// mirrors only some platforms makes npm drop the others, and `npm ci` then fails on the machines that need them.

interface LockedPackage {
  integrity?: string;
  resolved?: string;
  link?: boolean;
  optionalDependencies?: Record<string, string>;
}

export interface Lockfile {
  packages: Record<string, LockedPackage>;
}

/** Returns one sentence for each entry that breaks the rule. */
export function findLockfileProblems(path: string, { packages }: Lockfile): string[] {
  const problems: string[] = [];
  for (const [place, entry] of Object.entries(packages)) {
    // The repository itself and its workspaces come from no registry.
    if (!place.includes("node_modules/") || entry.link === true) continue;
    const name = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
    if (!isHash(entry.integrity)) problems.push(`${path}: ${name} has no integrity; choose a version that the registry has in full`);
    if (entry.resolved !== undefined) problems.push(`${path}: ${name} names where it came from; set omit-lockfile-registry-resolved`);
    for (const optional of Object.keys(entry.optionalDependencies ?? {})) {
      if (!isLocked(packages, place, optional)) problems.push(`${path}: ${optional}, a platform of ${name}, is missing`);
    }
  }
  return problems;
}

/** SHA-1 alone can be forged. */
function isHash(integrity: string | undefined): boolean {
  return integrity !== undefined && /^sha(256|384|512)-/.test(integrity);
}

/** Where Node looks for it: beside the package that lists it, then in each folder above. */
function isLocked(packages: Lockfile["packages"], place: string, name: string): boolean {
  for (let from = place; ; from = from.slice(0, Math.max(0, from.lastIndexOf("/node_modules/")))) {
    if (packages[from === "" ? `node_modules/${name}` : `${from}/node_modules/${name}`] !== undefined) return true;
    if (from === "") return false;
  }
}
