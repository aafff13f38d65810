// Waits for a state that no event announces. It checks in each turn of the event loop, so it ends in the turn in which the state is
// reached. The limit of the test runner ends it when that never happens.

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** A promise that the test resolves or rejects. */
export function deferred<Value>() {
  let resolve!: (value: Value) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** The pause between two checks of another process. Without a pause, the checks would take the processor from it. */
const lookMs = 2;

/** The same for a state that another process causes. Returns the last result of the condition. */
export async function untilElsewhere<Value>(condition: () => Value | false | Promise<Value | false>): Promise<Value> {
  for (;;) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}
