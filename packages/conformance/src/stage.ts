// What one test starts and must not leave behind: processes, folders, listeners. They are closed in reverse order when the test is over.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type Child, type ChildOptions, startChild } from "./child.ts";

/** The part of a test's context that a stage needs; a recorder passes its own. */
export interface Lifetime {
  onTestFinished(cleanup: () => Promise<void>): void;
}

export interface Stage {
  start(command: string, args: readonly string[], options: ChildOptions): Child;
  folder(): string;
  onClose(cleanup: () => unknown): void;
}

/** A stage that all tests of a file share, for peers that are slow to start. Call it in a `describe` block, not in a test. */
export function openFileStage(): Stage {
  return openStage({ onTestFinished: (cleanup) => afterAll(cleanup) });
}

export function openStage(lifetime: Lifetime): Stage {
  const cleanups: (() => unknown)[] = [];
  const children: Child[] = [];
  // The test runner may end without waiting for hooks; even then nothing stays behind.
  const abandon = (): void => {
    for (const child of children) child.signal("SIGKILL");
  };
  process.once("exit", abandon);

  lifetime.onTestFinished(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
    process.off("exit", abandon);
  });

  return {
    onClose: (cleanup) => void cleanups.push(cleanup),
    start(command, args, options) {
      const child = startChild(command, args, options);
      children.push(child);
      cleanups.push(() => child.stop());
      return child;
    },
    folder() {
      const path = mkdtempSync(join(tmpdir(), "longshore-conformance-"));
      cleanups.push(() => rmSync(path, { recursive: true, force: true }));
      return path;
    },
  };
}
