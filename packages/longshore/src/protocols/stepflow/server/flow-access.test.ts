import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../test/support/parts.ts";
import { flowAccess } from "./flow-access.ts";

describe("what flows may read", () => {
  it("is nothing by default", () => {
    expect(flowAccess({})).toEqual({ files: null, variables: new Set() });
  });

  it("excludes secrets in an allowed folder", () => {
    const folder = temporaryFolder();
    const secret = join(folder, "tokens");
    expect(flowAccess({ files: folder }, [secret]).files?.hidden).toEqual([secret]);
  });

  it("cannot be a folder that does not exist, the working directory, or an invalid name of a variable", () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "d"));
    writeFileSync(join(folder, "f"), "");
    for (const files of [join(folder, "f"), join(folder, "nothing"), ".", process.cwd(), "..", "/"]) {
      expect(() => flowAccess({ files })).toThrow("folder");
    }
    for (const name of ["", "A B", "1A", "A=1"]) expect(() => flowAccess({ variables: [name] })).toThrow("is not a name");
  });
});
