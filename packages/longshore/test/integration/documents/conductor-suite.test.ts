// Conductor's guide has requirements for the tests and documents of an SDK. This test reads the requirement ids from the titles of tests. It
// cannot check whether these tests prove what they claim.

import { describe, expect, it } from "vitest";
import { readDocument, section, sectionsOf } from "../../support/markdown.ts";
import { explainedIn, proofs, testFiles } from "../../support/requirements.ts";

const explained = explainedIn("packages/conformance/conductor/README.md");
const proven = proofs();
const named = new Set(proven.map(({ id }) => id));

/** Every id of these groups, such as `CFG`, and these single ones, such as `EXEC-07`. */
function idsOf(...groups: string[]): string[] {
  return groups.flatMap((group) => {
    const ids = explained.filter((id) => id === `C-${group}` || id.startsWith(`C-${group}-`));
    if (ids.length === 0) throw new Error(`No id of Conductor's is called ${group}.`);
    return ids;
  });
}

const untested = (...groups: string[]): string[] => idsOf(...groups).filter((id) => !named.has(id));

/** The text of every test file that names one of these. */
function textOf(...groups: string[]): string {
  const ids = idsOf(...groups);
  const files = new Set(proven.filter(({ id }) => ids.includes(id)).map(({ file }) => file));
  return [...files].map(readDocument).join("\n");
}

describe("the tests of the Conductor worker", () => {
  it("[C-TEST-01] replace none of our modules: the other side is a server on real sockets", () => {
    const files = testFiles().filter((file) => proven.some((proof) => proof.file === file && proof.id.startsWith("C-")));
    expect(files.length).toBeGreaterThan(20);
    const replacing = files.filter((file) => /\bvi\.(mock|doMock|hoisted|stubGlobal|fn)\b|__mocks__/.test(readDocument(file)));
    expect(replacing.filter((file) => !file.endsWith("/conductor-suite.test.ts"))).toEqual([]);
    const onTheWire = proven.filter(({ id }) => /^C-(POLL|UPD|V2|AUTH|REG|CAP|TIP)-/.test(id)).map(({ file }) => file);
    const unplayed = [...new Set(onTheWire)].filter((file) => !/support\/conductor-(stub|worker|rest)\.ts"/.test(readDocument(file)));
    // Tests of settings need no server.
    expect(unplayed.filter((file) => !/\/(config|options)\.test\.ts$/.test(file))).toEqual([]);
  });

  it("[C-TEST-02] cover polls and their sizes, concurrency, execution, updates and results", () => {
    expect(untested("POLL", "CAP", "EXEC", "UPD", "V2", "WIRE", "HTTP-05", "ARCH-04")).toEqual([]);
  });

  it("[C-TEST-03] cover every setting: its spellings, its precedence, its types", () => {
    expect(untested("CFG")).toEqual([]);
    const text = textOf("CFG");
    for (const start of ["conductor.worker.", "conductor_worker_", "CONDUCTOR_WORKER_", "CONDUCTOR_WORKER_ALL_"])
      expect(text).toContain(start);
  });

  it("[C-TEST-04] cover errors of handlers and of the server, of tokens, and the schedule of updates", () => {
    expect(untested("ERR", "AUTH", "UPD", "PIT", "EXEC-10", "EXEC-11", "EXEC-12", "EXEC-14")).toEqual([]);
    for (const status of [401, 403, 404, 500]) expect(textOf("UPD-01"), String(status)).toMatch(new RegExp(`\\["${status}\\b`));
  });

  it("[C-TEST-05] cover empty polls, pauses, a full worker, null and later", () => {
    expect(untested("POLL-05", "POLL-06", "POLL-07", "POLL-12", "POLL-13", "POLL-03", "CAP", "EXEC-07", "TIP")).toEqual([]);
    expect(textOf("EXEC-07")).toContain('["null", null,');
  });

  it("[C-TEST-06] cover all seven events with their fields, several listeners, and a listener that fails", () => {
    expect(untested("EVT")).toEqual([]);
    const text = textOf("EVT");
    const seven = [
      "pollStarted",
      "pollCompleted",
      "pollFailed",
      "executionStarted",
      "executionCompleted",
      "executionFailed",
      "updateFailed",
    ];
    for (const name of seven) expect(text).toContain(`.on("${name}"`);
  });

  it("[C-TEST-08] also run on the real server: every outcome, many workers, and load", () => {
    const files = new Set(proven.filter(({ id }) => id === "C-TEST-08").map(({ file }) => file));
    const real = [...files].filter((file) => file.startsWith("packages/conformance/conductor/"));
    expect(real.length).toBeGreaterThan(0);
    for (const file of real) expect(readDocument(file)).toContain("startReferenceServer(");
    expect(readDocument("bench/conductor.ts")).toContain("startReference(");
  });
});

describe("what an SDK must have", () => {
  it("[C-OK-01] is tested: loop, execution, attempts, settings, errors, final failures, events, both kinds of handlers", () => {
    expect(untested("POLL", "EXEC", "UPD", "CFG", "ERR", "EVT", "ARCH-08", "ARCH-12")).toEqual([]);
  });

  it("[C-OK-02] and what it should have are tested: registration, schemas, lost updates, later, strict mode", () => {
    expect(untested("REG", "SCH", "EVT-07", "UPD-04", "TIP", "PIT-04")).toEqual([]);
  });

  it("[C-OK-03] is also measured: delays, requests, memory, idle cost and metrics, compared with the official SDK", () => {
    expect(untested("ARCH-05", "ARCH-06", "PERF", "MET", "HND-09", "HND-11")).toEqual([]);
    const { rows } = seenOfConductor();
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.flat().filter((cell) => /\d/.test(cell)).length).toBeGreaterThan(rows.length);
  });

  it("[C-OK-04] is documented: a guide that the README links to, every setting, and benchmarks with their results", () => {
    expect(readDocument("README.md")).toContain("(docs/guides/conductor.md)");
    const guide = sectionsOf(readDocument("docs/guides/conductor.md")).map(({ title }) => title);
    expect(guide).toEqual(expect.arrayContaining(["Your workers on Longshore", "A worker of ours", "Moving over"]));
    expect(section(readDocument("packages/longshore/src/protocols/conductor/README.md"), "Configuration").rows.length).toBeGreaterThan(9);
    const how = sectionsOf(section(readDocument("bench/README.md"), "How each is measured").text, 3);
    expect(how.map(({ title }) => title)).toContain("conductor");
    expect(seenOfConductor().text).toMatch(/SDK/);
  });
});

/** The newest recorded figures. */
function seenOfConductor() {
  const seen = sectionsOf(section(readDocument("bench/README.md"), "What was seen").text, 3);
  const found = seen.find(({ title }) => title.startsWith("conductor"));
  if (found === undefined) throw new Error("bench/README.md has no figures of the benchmark conductor.");
  return found;
}
