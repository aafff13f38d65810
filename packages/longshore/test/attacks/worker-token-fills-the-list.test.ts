// The attacker holds a worker token and claims with invented worker names, each time with other labels. The server remembered all labels for
// each name: a thousand names with nine claims each used 1.3 GB, and it remembers up to ten thousand names.

import { expect, it } from "vitest";
import { newTask } from "../../src/engine/board/new-task.ts";
import { Workers } from "../../src/engine/board/workers.ts";
import { TestClock } from "../../src/testing/clock.ts";

const charsMax = 33_554_432;

/** The maximum number of characters of one claim. */
function words(of: string): string[] {
  return Array.from({ length: 128 }, (_, at) => `${of}.${at}`.padEnd(250, "x"));
}

function setup() {
  const clock = new TestClock();
  const workers = new Workers({ clock });
  const claim = (id: string, of: string) => {
    clock.jump(1);
    const names = words(of);
    workers.seen(id, { protocol: "p", reach: { names, labels: names.map((name) => `handler:${name}`) } });
  };
  const held = (id: string, holder: string) => {
    const task = newTask({ id, step: "s", lanes: [], input: "null", policy: null }, 0, { name: "l", labels: [] });
    workers.changed({ ...task, state: "held", grant: 1, holder, termMs: 30_000, claimedAt: 0 });
  };
  return { clock, workers, claim, held };
}

it("the names and labels of all workers have a size limit, and the longest silent workers without a task are removed first", () => {
  const { workers, claim, held } = setup();
  claim("holder", "real");
  held("T", "holder");
  for (let id = 0; id < 300; id++) {
    for (let round = 0; round < 9; round++) claim(`made-up-${id}`, `${id}.${round}`);
    claim("real", "real");
  }
  expect(workers.wordChars).toBeLessThanOrEqual(charsMax);
  const seen = [...workers.views()].map(({ id }) => id);
  expect(seen).toContain("real");
  expect(seen).toContain("holder");
  expect(seen).toContain("made-up-299");
  expect(seen).not.toContain("made-up-0");
  expect(workers.get("real")?.reach?.names).toEqual(words("real"));
});

it("workers that hold tasks stay, but lose their labels and names when there is no room", () => {
  const { workers, claim, held } = setup();
  for (let id = 0; id < 300; id++) {
    held(`T${id}`, `w${id}`);
    for (let round = 0; round < 9; round++) claim(`w${id}`, `${id}.${round}`);
  }
  expect(workers.wordChars).toBeLessThanOrEqual(charsMax);
  expect([...workers.views()]).toHaveLength(300);
  expect(workers.get("w0")).toMatchObject({ status: "busy", labels: [], reach: null });
  expect(workers.get("w299")?.reach?.names.slice(0, 128)).toEqual(words("299.8"));
});
