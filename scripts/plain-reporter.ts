// Ends a run with one line that people and machines can read: `12 passed, 0 failed`, and `, 1 skipped` when any was.
// With LONGSHORE_NO_SKIP=1 a skipped test turns the exit code non-zero: in CI an absent service is a failure, not a pass.
import type { Reporter, TestModule } from "vitest/node";

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const counts = countTests(modules, unhandledErrors.length);
    // Written at exit because other reporters still print their summary after this hook.
    process.once("exit", () => {
      process.stdout.write(`${closingLine(counts)}\n`);
      if (counts.skipped > 0 && process.env.LONGSHORE_NO_SKIP === "1") {
        process.stderr.write(`LONGSHORE_NO_SKIP=1: ${counts.skipped} skipped counts as failure\n`);
        process.exitCode = 1;
      }
    });
  }
}

export function closingLine({ passed, failed, skipped }: Counts): string {
  const line = `${passed} passed, ${failed} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

/** Counts tests by their last state; an error outside any test and a file that did not load count as one failure each. */
export function countTests(modules: readonly TestModule[], unhandledErrors: number): Counts {
  const counts: Counts = { passed: 0, failed: unhandledErrors, skipped: 0 };
  for (const module of modules) {
    let failedInModule = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === "passed") counts.passed += 1;
      else if (state === "failed") failedInModule += 1;
      else counts.skipped += 1;
    }
    // A file that throws while loading, or whose hook throws, fails without a failing test inside it.
    const failedOutsideTests = module.state() === "failed" && failedInModule === 0 ? 1 : 0;
    counts.failed += failedInModule + failedOutsideTests;
  }
  return counts;
}
