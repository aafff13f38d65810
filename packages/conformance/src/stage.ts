// What one test starts and must not leave behind: processes, folders, listeners. Closed in reverse order when the test is over.
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

/** A stage that a whole file of tests shares, for peers that are slow to start. Opened where the tests are described, not inside one. */
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
