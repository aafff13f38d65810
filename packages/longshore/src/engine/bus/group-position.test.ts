import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GroupPosition, type Range } from "./group-position.ts";

describe("the position of a group in a topic", () => {
  it("hands out returned records before new records", () => {
    const place = new GroupPosition(0, []);
    const first = place.take(10, 3) as Range;
    expect(place.take(10, 3)).toEqual({ first: 4, last: 6 });
    place.giveBack(first);
    expect(place.take(10, 2)).toEqual({ first: 1, last: 2 });
    expect(place.take(10, 9)).toEqual({ first: 3, last: 3 });
    expect(place.take(10, 9)).toEqual({ first: 7, last: 10 });
    expect(place.take(10, 9)).toBe(null);
  });

  it("moves past records that were done out of order", () => {
    const place = new GroupPosition(0, []);
    Object.assign(place, place.after({ first: 4, last: 6 }));
    expect([place.position, place.done]).toEqual([0, [{ first: 4, last: 6 }]]);
    Object.assign(place, place.after({ first: 1, last: 3 }));
    expect([place.position, place.done]).toEqual([6, []]);
  });

  it("continues after removed records", () => {
    const place = new GroupPosition(0, [{ first: 5, last: 6 }]);
    place.skipTo(5);
    expect([place.position, place.done]).toEqual([6, []]);
    expect(place.take(8, 9)).toEqual({ first: 7, last: 8 });
  });

  it("agrees with a model that knows the state of each record, through restarts", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("take" as const), max: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constantFrom("done" as const, "back" as const), which: fc.nat(5) }),
      fc.constant({ kind: "restart" as const }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const end = 30;
        const done = new Set<number>();
        let place = new GroupPosition(0, []);
        let out: Range[] = [];
        for (const one of steps) {
          if (one.kind === "take") {
            const range = place.take(end, one.max);
            if (range === null) expect(done.size + numbers(out).length).toBe(end);
            else {
              for (const number of numbers([range])) expect(done.has(number) || numbers(out).includes(number)).toBe(false);
              expect(range.last - range.first).toBeLessThan(one.max);
              out.push(range);
            }
          } else if (one.kind === "restart") {
            place = new GroupPosition(place.position, place.done);
            out = [];
          } else {
            const [range] = out.splice(one.which, 1);
            if (range === undefined) continue;
            if (one.kind === "back") place.giveBack(range);
            else {
              Object.assign(place, place.after(range));
              for (const number of numbers([range])) done.add(number);
            }
          }
          expect(numbers([{ first: 1, last: place.position }, ...place.done])).toEqual([...done].sort((a, b) => a - b));
        }
      }),
    );
  });
});

function numbers(ranges: readonly Range[]): number[] {
  return ranges.flatMap(({ first, last }) => Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at));
}
