import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { idMaker } from "./ids.ts";

const shape = /^[0-9A-HJKMNP-TV-Z]{26}$/;

describe("ids", () => {
  it("are 26 characters without the letters that people confuse", () => {
    const makeId = idMaker();
    for (let made = 0; made < 1_000; made++) expect(makeId(1_700_000_000_000)).toMatch(shape);
  });

  it("begin with their time, so that ids of different makers sort by time", () => {
    const [early, late] = [idMaker()(1_700_000_000_000), idMaker()(1_700_000_000_001)];
    expect(early < late).toBe(true);
    expect(early.slice(0, 10)).toBe(idMaker()(1_700_000_000_000).slice(0, 10));
  });

  it("rise strictly whatever the clock does", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 45 }), { minLength: 2, maxLength: 60 }), (times) => {
        const makeId = idMaker();
        const ids = times.map((time) => makeId(time));
        for (let at = 1; at < ids.length; at++) expect((ids[at] as string) > (ids[at - 1] as string)).toBe(true);
      }),
    );
  });

  it("count upwards within one millisecond", () => {
    const makeId = idMaker((into) => into.fill(0));
    const ids = Array.from({ length: 40 }, () => makeId(5));
    expect(new Set(ids).size).toBe(40);
    expect([...ids].sort()).toEqual(ids);
    expect(ids[1]).toBe("00000000050000000000000001");
  });

  it("carry over from digit to digit", () => {
    let first = true;
    const makeId = idMaker((into) => into.fill(first ? 31 : 0));
    const before = makeId(7);
    expect(before).toBe("0000000007FZZZZZZZZZZZZZZZ");
    first = false;
    expect(makeId(7)).toBe("0000000007G000000000000000");
  });

  it("differ between makers that start in the same millisecond", () => {
    expect(new Set(Array.from({ length: 200 }, () => idMaker()(1))).size).toBe(200);
  });
});
