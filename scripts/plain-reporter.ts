// Ends a run with one line that people and machines can read: `12 passed, 0 failed`. Skipped tests are named on the lines before it,
// with what they missed. With LONGSHORE_NO_SKIP=1 they count as failed: in CI an absent service is a failure, not a pass.
import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  passed: number;
  failed: number;
  /** One line for each: where it is, its title, and why it did not run. */
  skipped: string[];
}

export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const outcome = outcomeOf(modules, unhandledErrors.length);
    const skipsFail = process.env.LONGSHORE_NO_SKIP === "1";
    // Written at exit because other reporters still print their summary after this hook.
    process.once("exit", () => {
      process.stdout.write(closingText(outcome, skipsFail));
      if (skipsFail && outcome.skipped.length > 0) process.exitCode = 1;
    });
  }
}

export function closingText({ passed, failed, skipped }: Outcome, skipsFail: boolean): string {
  const lines = skipped.map((line) => `SKIPPED ${line}`);
  if (skipped.length > 0) lines.push(`${skipped.length} SKIPPED${skipsFail ? ", counted as failed (LONGSHORE_NO_SKIP=1)" : ""}`);
  lines.push(`${passed} passed, ${failed + (skipsFail ? skipped.length : 0)} failed`);
  return `${lines.join("\n")}\n`;
}

/** Counts tests by their last state; an error outside any test and a file that did not load count as one failure each. */
export function outcomeOf(modules: readonly TestModule[], unhandledErrors: number): Outcome {
  const outcome: Outcome = { passed: 0, failed: unhandledErrors, skipped: [] };
  for (const module of modules) {
    let failedInModule = 0;
    for (const test of module.children.allTests()) {
      const result = test.result();
      if (result.state === "passed") outcome.passed += 1;
      else if (result.state === "failed") failedInModule += 1;
      else {
        const why = result.state === "skipped" && result.note !== undefined ? result.note : "no reason given";
        outcome.skipped.push(`${module.relativeModuleId} > ${test.fullName}: ${why}`);
      }
    }
    // A file that throws while loading, or whose hook throws, fails without a failing test inside it.
    const failedOutsideTests = module.state() === "failed" && failedInModule === 0 ? 1 : 0;
    outcome.failed += failedInModule + failedOutsideTests;
  }
  return outcome;
}
