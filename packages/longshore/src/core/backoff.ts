// The delay before a retry, as data: a policy can be stored with a task and computed without a clock.

/** The delay between a failed attempt and the next one; `maxMs` bounds the growth. */
export type Backoff = Jitter &
  (
    | { kind: "fixed"; delayMs: number }
    | { kind: "linear"; delayMs: number; maxMs?: number }
    | { kind: "exponential"; delayMs: number; maxMs?: number; factor?: number }
    /** 1, 1, 2, 3, 5, 8 times the delay. */
    | { kind: "fibonacci"; delayMs: number; maxMs?: number }
  );

interface Jitter {
  /** Varies the delay at random by up to this share: 0.2 means between 80 % and 120 %. */
  jitter?: number;
  /** Adds a random number of whole milliseconds, at most this many. */
  jitterMs?: number;
}

/** The delays between the attempts of a step whose author gives none. */
export const stepBackoff: Backoff = { kind: "exponential", delayMs: 1_000, maxMs: 60_000, jitter: 0.2 };

/** The upper limit of every delay computed here: one week. */
export const backoffMsMax = 7 * 24 * 3_600_000;

/** The wait before retry number `retry` (1 = the first retry). `random` is in [0, 1). */
export function backoffMs(policy: Backoff, retry: number, random: number): number {
  const base = Math.min(rawDelay(policy, Math.max(1, retry)), backoffMsMax);
  const jitter = Math.min(Math.max(policy.jitter ?? 0, 0), 1);
  const extra = Math.floor(random * (Math.max(policy.jitterMs ?? 0, 0) + 1));
  return Math.min(Math.round(base * (1 + jitter * (2 * random - 1))) + extra, backoffMsMax);
}

function rawDelay(policy: Backoff, retry: number): number {
  // Without this, a delay of 0 times an infinite power would be NaN.
  if (policy.kind === "fixed" || policy.delayMs === 0) return policy.delayMs;
  if (policy.kind === "linear") return Math.min(policy.delayMs * retry, policy.maxMs ?? backoffMsMax);
  if (policy.kind === "fibonacci") return Math.min(policy.delayMs * fibonacci(retry), policy.maxMs ?? backoffMsMax);
  return Math.min(policy.delayMs * (policy.factor ?? 2) ** (retry - 1), policy.maxMs ?? backoffMsMax);
}

/** The terms beyond this exceed every allowed delay. */
const termsMax = 100;

function fibonacci(term: number): number {
  let [here, next] = [1, 1];
  for (let at = 1; at < Math.min(term, termsMax); at++) [here, next] = [next, here + next];
  return here;
}
