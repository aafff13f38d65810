import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { idFrom, idMaker, idOfUuid, uuidOf } from "./ids.ts";

const shape = /^[0-9A-HJKMNP-TV-Z]{26}$/;

describe("ids", () => {
  it("are 26 characters without the letters that people confuse", () => {
    const makeId = idMaker();
    for (let made = 0; made < 1_000; made++) expect(makeId(1_700_000_000_000)).toMatch(shape);
  });

  it("begin with their time, so that ids from different sources sort by time", () => {
    const [early, late] = [idMaker()(1_700_000_000_000), idMaker()(1_700_000_000_001)];
    expect(early < late).toBe(true);
    expect(early.slice(0, 10)).toBe(idMaker()(1_700_000_000_000).slice(0, 10));
  });

  it("always rise, also when the clock goes back", () => {
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
    expect(ids[1]).toBe("0000000005E008000000000001");
  });

  it("carry over into the next digit when they count", () => {
    const makeId = idMaker((into) => into.fill(31, 4));
    expect(makeId(7)).toBe("0000000007E008ZZZZZZZZZZZZ");
    expect(makeId(7)).toBe("0000000007E009000000000000");
  });

  it("differ between sources that start in the same millisecond", () => {
    expect(new Set(Array.from({ length: 200 }, () => idMaker()(1))).size).toBe(200);
  });

  it("are UUIDs of version 7 in another spelling, and can be converted back", () => {
    const makeId = idMaker();
    for (let made = 0; made < 1_000; made++) {
      const id = makeId(1_700_000_000_000 + made);
      const uuid = uuidOf(id) as string;
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(uuid.replace("-", "").slice(0, 12), 16)).toBe(1_700_000_000_000 + made);
      expect(idOfUuid(uuid)).toBe(id);
      expect(idOfUuid(uuid.toUpperCase())).toBe(id);
    }
  });

  it("that another program made are not converted", () => {
    for (const text of ["", "ci-1", "01K9-2-0", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FAU"])
      expect(uuidOf(text)).toBeUndefined();
    for (const text of ["", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "0190163d8694739b9efec9bf9a1d0b8c", "0190163d-8694-739b-9efe-c9bf9a1d0b8g"])
      expect(idOfUuid(text)).toBeUndefined();
  });

  it("can be made from a text: the same text and time give the same id", () => {
    const id = idFrom("a step, a key", 1_700_000_000_000);
    expect(id).toMatch(shape);
    expect(idFrom("a step, a key", 1_700_000_000_000)).toBe(id);
    expect(idFrom("a step, another key", 1_700_000_000_000)).not.toBe(id);
    expect(idFrom("a step, a key", 1_700_000_000_001).slice(10)).toBe(id.slice(10));
    expect(uuidOf(id)?.[14]).toBe("7");
  });
});
