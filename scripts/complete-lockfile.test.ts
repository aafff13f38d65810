import { expect, it } from "vitest";
import { completeLockfile, type Lockfile } from "./complete-lockfile.ts";

function lockfile(): Lockfile {
  return {
    packages: {
      "node_modules/native": {
        version: "1.2.3",
        dev: true,
        optionalDependencies: {
          "@native/linux-x64": "1.2.3",
          "@native/linux-x64-musl": "1.2.3",
          "@native/binding-win32-arm64-msvc": "1.2.3",
          "@native/wasm32-wasi": "1.2.3",
          fsevents: "~2.3.3",
        },
      },
      "node_modules/@native/linux-x64": { version: "1.2.3" },
    },
  };
}

it("adds the dropped platforms, pinned and bound to their platform", () => {
  const locked = lockfile();
  expect(completeLockfile(locked)).toHaveLength(3);
  expect(locked.packages["node_modules/@native/linux-x64-musl"]).toEqual({
    ...{ version: "1.2.3", dev: true, optional: true },
    ...{ cpu: ["x64"], os: ["linux"], libc: ["musl"] },
  });
  expect(locked.packages["node_modules/@native/binding-win32-arm64-msvc"]).toMatchObject({ cpu: ["arm64"], os: ["win32"] });
  expect(locked.packages["node_modules/@native/wasm32-wasi"]).toMatchObject({ cpu: ["wasm32"] });
});

it("leaves a complete lockfile alone", () => {
  const locked = lockfile();
  completeLockfile(locked);
  const before = structuredClone(locked);
  expect(completeLockfile(locked)).toEqual([]);
  expect(locked).toEqual(before);
});
