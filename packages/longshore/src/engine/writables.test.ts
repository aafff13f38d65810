import { describe, expect, it } from "vitest";
import type { Tx } from "./tx.ts";
import { type Writable, Writables } from "./writables.ts";

describe("what takes part in a commit", () => {
  const tx = {} as Tx;

  function recorded(name: string, calls: string[], inApplied: () => void = () => {}): Writable {
    return {
      get dirty() {
        calls.push(`dirty ${name}`);
        return false;
      },
      write: () => void calls.push(`write ${name}`),
      applied: () => {
        calls.push(`applied ${name}`);
        inApplied();
      },
    };
  }

  it("is asked only when it was touched, in the order in which it joined", () => {
    const calls: string[] = [];
    const writables = new Writables();
    const touchFirst = writables.addWhenTouched(recorded("first", calls));
    writables.addWhenTouched(recorded("untouched", calls));
    const touchThird = writables.addWhenTouched(recorded("third", calls));
    touchThird();
    touchFirst();
    touchFirst();
    expect(writables.dirty).toBe(false);
    writables.write(tx);
    writables.applied();
    expect(calls).toEqual(["dirty first", "dirty third", "write first", "write third", "applied first", "applied third"]);
    writables.write(tx);
    expect(calls).toHaveLength(6);
  });

  it("takes part in the next one too when something is left", () => {
    const calls: string[] = [];
    const writables = new Writables();
    const touch = writables.addWhenTouched(recorded("rest", calls, () => touch()));
    touch();
    writables.applied();
    writables.write(tx);
    expect(calls).toEqual(["applied rest", "write rest"]);
  });

  it("is asked each time when it joined for every commit", () => {
    const calls: string[] = [];
    const writables = new Writables();
    writables.add(recorded("always", calls));
    writables.applied();
    writables.write(tx);
    expect(calls).toEqual(["applied always", "write always"]);
  });
});
