import { expect, it } from "vitest";
import { findLockfileProblems } from "./lockfile-rule.ts";

const integrity = "sha512-AAAA";

it("accepts packages with a hash, workspaces and links", () => {
  const packages = {
    "": {},
    "packages/own": {},
    "node_modules/own": { resolved: "packages/own", link: true },
    "node_modules/a": { integrity, optionalDependencies: { "@a/linux-x64": "1.0.0", "@a/darwin-x64": "1.0.0" } },
    "node_modules/@a/linux-x64": { integrity },
    "node_modules/a/node_modules/@a/darwin-x64": { integrity },
  };
  expect(findLockfileProblems("lock", { packages })).toEqual([]);
});

it("finds a package without a hash, with a weak hash, and with an address", () => {
  const resolved = "registry.example/c.tgz";
  const packages = { "node_modules/a": {}, "node_modules/@s/b": { integrity: "sha1-AAAA" }, "node_modules/c": { integrity, resolved } };
  expect(findLockfileProblems("lock", { packages })).toEqual([
    "lock: a has no integrity; choose a version that the registry has in full",
    "lock: @s/b has no integrity; choose a version that the registry has in full",
    "lock: c names where it came from; set omit-lockfile-registry-resolved",
  ]);
});

it("finds a platform that npm has left out", () => {
  const packages = { "node_modules/x/node_modules/a": { integrity, optionalDependencies: { "@a/win32-x64": "1.0.0" } } };
  expect(findLockfileProblems("lock", { packages })).toEqual(["lock: @a/win32-x64, a platform of a, is missing"]);
});
