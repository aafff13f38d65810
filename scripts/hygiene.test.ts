import { describe, expect, it } from "vitest";
import { findMachineTraces, findTitleProblems } from "./hygiene.ts";

const place = { root: "/srv/checkout/project", home: "/var/people/sam" };

describe("machine traces", () => {
  it("finds the repository's folder, its parent and the home folder", () => {
    const text = "fine\nsee /srv/checkout/project/README.md\nsee /srv/checkout/other\nsee /var/people/sam/notes\n";
    expect(findMachineTraces("a.md", text, place)).toEqual([
      "a.md:2: names a folder of this machine (/srv/checkout/project/)",
      "a.md:3: names a folder of this machine (/srv/checkout/)",
      "a.md:4: names a folder of this machine (/var/people/sam/)",
    ]);
  });

  it("finds registry addresses in lockfiles and commands", () => {
    const scheme = "https:";
    expect(findMachineTraces("lock.json", `"resolved": "${scheme}//host/a.tgz"`, place)).toHaveLength(1);
    expect(findMachineTraces("run.sh", `npm ci --registry ${scheme}//host`, place)).toHaveLength(1);
  });

  it("accepts workspace links and ordinary addresses", () => {
    expect(findMachineTraces("lock.json", `"resolved": "packages/longshore"\nhttp://127.0.0.1:4500/`, place)).toEqual([]);
  });
});

describe("test titles", () => {
  it("finds a title that is used twice, with any kind of quotes", () => {
    const text = [`it("does one thing", () => {});`, "  it(`does one thing`, () => {});", `it("does another", () => {});`].join("\n");
    expect(findTitleProblems("a.test.ts", text)).toEqual([`a.test.ts: two tests are called "does one thing"`]);
  });

  it("finds a repeated title of a table test", () => {
    const text = [`it.each([1, 2])("counts %i", () => {});`, `it("counts %i", () => {});`].join("\n");
    expect(findTitleProblems("a.test.ts", text)).toHaveLength(1);
  });

  it("finds tests that never run", () => {
    const text = ["skip", "only", "todo"].map((word) => `describe.${word}("x", () => {});`).join("\n");
    expect(findTitleProblems("a.test.ts", text)).toHaveLength(3);
  });
});
