// The contract of every store. Called with a kind of store, once for each database.

import { afterEach, describe } from "vitest";
import { boardContract } from "./store-board.ts";
import { cancelContract } from "./store-cancel.ts";
import { childContract } from "./store-children.ts";
import { commitContract } from "./store-commit.ts";
import { deadlineContract } from "./store-deadlines.ts";
import { debounceContract, debounceRestartContract } from "./store-debounce.ts";
import { delayContract, delayRestartContract } from "./store-delays.ts";
import { endingsContract } from "./store-endings.ts";
import { functionLivesContract } from "./store-function-lives.ts";
import { functionContract } from "./store-functions.ts";
import { limitContract, limitRestartContract } from "./store-limits.ts";
import { lineContract } from "./store-lines.ts";
import { livesContract, livesRestartContract } from "./store-lives.ts";
import { offerContract } from "./store-offers.ts";
import { partReaderContract } from "./store-part-readers.ts";
import { partContract } from "./store-parts.ts";
import { powerCutContract } from "./store-power-cut.ts";
import { restartContract } from "./store-restart.ts";
import { runContract } from "./store-runs.ts";
import { scheduleChangesContract } from "./store-schedule-changes.ts";
import { scheduleRestartContract } from "./store-schedule-restarts.ts";
import { scheduleContract } from "./store-schedules.ts";
import { signalContract } from "./store-signals.ts";
import { sleepersContract, sleepersRestartContract } from "./store-sleepers.ts";
import { openWorld, type StoreKind, type World, type WorldOptions } from "./world.ts";

/** Opens a fresh world; it is closed after the test. */
export type Setup = (options?: WorldOptions) => Promise<World>;

export function storeContract(name: string, kind: StoreKind): void {
  describe(name, () => {
    const opened: World[] = [];
    afterEach(async () => {
      for (const world of opened.splice(0)) await world.close();
    });
    const setup: Setup = async (options) => {
      const world = await openWorld(kind, options);
      opened.push(world);
      return world;
    };
    boardContract(setup);
    offerContract(setup);
    lineContract(setup);
    cancelContract(setup);
    endingsContract(setup);
    deadlineContract(setup);
    delayContract(setup);
    limitContract(setup);
    debounceContract(setup);
    commitContract(setup);
    runContract(setup);
    childContract(setup);
    scheduleContract(setup);
    scheduleChangesContract(setup);
    partContract(setup);
    partReaderContract(setup);
    signalContract(setup);
    functionContract(setup);
    functionLivesContract(setup);
    sleepersContract(setup);
    // Hundreds of small worlds, in memory: the code is the same, and each costs a tenth of one in a file.
    if (!kind.keeps) return livesContract(setup);
    restartContract(setup);
    scheduleRestartContract(setup);
    delayRestartContract(setup);
    limitRestartContract(setup);
    debounceRestartContract(setup);
    livesRestartContract(setup);
    sleepersRestartContract(setup);
    powerCutContract(setup, kind);
  });
}
