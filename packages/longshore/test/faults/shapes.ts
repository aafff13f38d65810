// Workflows of a few shapes. Their commands are never run: the workers of these tests only pretend to work.
import type { Job } from "./api.ts";

/** Far above what any schedule of faults can use up, so that only a cancel keeps a run from succeeding. */
const BUDGET = 1000;

const job = (id: string, dependsOn: string[] = []): Job => ({
  id,
  name: id,
  status: "queued",
  command: `echo ${id}`,
  depends_on: dependsOn,
  max_retries: BUDGET,
  max_lost_leases: BUDGET,
});

const numbered = (count: number, name: string): string[] => Array.from({ length: count }, (_, index) => `${name}-${index}`);

export const independent = (count: number): Job[] => numbered(count, "job").map((id) => job(id));

export const chain = (length: number): Job[] =>
  numbered(length, "link").map((id, index) => job(id, index === 0 ? [] : [`link-${index - 1}`]));

export const diamond = (): Job[] => [job("top"), job("left", ["top"]), job("right", ["top"]), job("bottom", ["left", "right"])];

export const fanOut = (width: number): Job[] => [job("root"), ...numbered(width, "leaf").map((id) => job(id, ["root"]))];

export const fanOutAndIn = (width: number): Job[] => [...fanOut(width), job("sink", numbered(width, "leaf"))];
