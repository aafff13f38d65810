import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heap } from "./heap.ts";

const smallest = () => new Heap<number>((a, b) => a < b);

describe("the heap", () => {
  it("is empty at first", () => {
    const heap = smallest();
    expect([heap.size, heap.peek(), heap.pop()]).toEqual([0, undefined, undefined]);
  });

  it("gives back everything that was pushed, smallest first", () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (numbers) => {
        const heap = smallest();
        for (const number of numbers) heap.push(number);
        expect([...heap.values()].sort((a, b) => a - b)).toEqual([...numbers].sort((a, b) => a - b));
        const popped = Array.from({ length: numbers.length }, () => heap.pop());
        expect(popped).toEqual([...numbers].sort((a, b) => a - b));
        expect(heap.size).toBe(0);
      }),
    );
  });

  it("shows the first entries in their order, and keeps them", () => {
    const heap = smallest();
    for (const number of [5, 1, 4, 2, 3]) heap.push(number);
    expect([heap.next(0), heap.next(3), heap.next(9)]).toEqual([[], [1, 2, 3], [1, 2, 3, 4, 5]]);
    expect([heap.size, heap.pop(), heap.pop()]).toEqual([5, 1, 2]);
  });

  it("agrees with a sorted list under any order of pushes and pops", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.constant("pop" as const))), (moves) => {
        const heap = smallest();
        const list: number[] = [];
        for (const move of moves) {
          if (move === "pop") expect(heap.pop()).toBe(list.shift());
          else {
            heap.push(move);
            list.push(move);
            list.sort((a, b) => a - b);
          }
          expect([heap.peek(), heap.size]).toEqual([list[0], list.length]);
        }
      }),
    );
  });
});
