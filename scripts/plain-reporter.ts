// Ends a run with one line that people and machines can read: `12 passed, 0 failed`. Failed and skipped tests are named on the lines before it,
// with the first line of their error or what they missed. With LONGSHORE_NO_SKIP=1 they count as failed: in CI an absent service is a failure, not a pass.
import type { Reporter, TestModule } from "vitest/node";

/** Enough to recognize a failure; the whole error is further up. */
const FAILURE_CHARACTERS = 300;

export interface Outcome {
  passed: number;
  failed: number;
  /** One line for each: where it is, its title, and the first line of its error. */
  failures: string[];
  /** One line for each: where it is, its title, and why it did not run. */
  skipped: string[];
}

export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const outcome = outcomeOf(modules, unhandledErrors);
    const skipsFail = process.env.LONGSHORE_NO_SKIP === "1";
    // Written at exit because other reporters still print their summary after this hook.
    process.once("exit", () => {
      process.stdout.write(closingText(outcome, skipsFail));
      if (skipsFail && outcome.skipped.length > 0) process.exitCode = 1;
    });
  }
}

export function closingText({ passed, failed, failures, skipped }: Outcome, skipsFail: boolean): string {
  const lines = [...failures.map((line) => `FAILED ${line}`), ...skipped.map((line) => `SKIPPED ${line}`)];
  if (skipped.length > 0) lines.push(`${skipped.length} SKIPPED${skipsFail ? ", counted as failed (LONGSHORE_NO_SKIP=1)" : ""}`);
  lines.push(`${passed} passed, ${failed + (skipsFail ? skipped.length : 0)} failed`);
  return `${lines.join("\n")}\n`;
}

/** Counts tests by their last state; an error outside any test and a file that did not load count as one failure each. */
export function outcomeOf(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): Outcome {
  const failures = unhandledErrors.map((error) => `outside any test: ${firstLine(error)}`);
  const outcome: Outcome = { passed: 0, failed: 0, failures, skipped: [] };
  for (const module of modules) {
    const before = failures.length;
    for (const test of module.children.allTests()) {
      const result = test.result();
      const title = `${module.relativeModuleId} > ${test.fullName}`;
      if (result.state === "passed") outcome.passed += 1;
      else if (result.state === "failed") failures.push(`${title}: ${firstLine(result.errors[0])}`);
      else {
        const why = result.state === "skipped" && result.note !== undefined ? result.note : "no reason given";
        outcome.skipped.push(`${title}: ${why}`);
      }
    }
    // A file that throws while loading, or whose hook throws, fails without a failing test inside it.
    const failedOutsideTests = module.state() === "failed" && failures.length === before;
    if (failedOutsideTests) failures.push(`${module.relativeModuleId}: ${firstLine(module.errors()[0] ?? "a hook failed")}`);
  }
  return { ...outcome, failed: failures.length };
}

function firstLine(error: unknown): string {
  const message = typeof error === "object" && error !== null && "message" in error ? error.message : error;
  return String(message).split("\n", 1)[0]?.slice(0, FAILURE_CHARACTERS) ?? "";
}
