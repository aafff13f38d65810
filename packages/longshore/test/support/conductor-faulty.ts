// A Conductor server whose data file fails on request: once or permanently, before a write or right after it. The next server opens the
// files of a killed one.

import { Agent } from "node:http";
import { onTestFinished } from "vitest";
import { createLogger } from "../../src/core/logger.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { openEngine } from "../../src/server/engine.ts";
import { openServerPort } from "../../src/server/server-port.ts";
import { type Database, openDatabase, type SqlRow, type Statement } from "../../src/store/sqlite/driver.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type ConductorServer, conductorConversation } from "./conductor-rest.ts";
import { temporaryFolder } from "./parts.ts";
import { protocolsOn } from "./protocols.ts";

export class Faults {
  /** Writes so far. */
  writes = 0;
  /** The process dies at this write: before it reaches the disk, or after it did and before any answer. */
  dieAt: { write: number; when: "before" | "after" } | null = null;
  dead = false;
  /** This many of the next writes fail; the process continues. */
  failNext = 0;
  /** Statements that were carried out, and the number of their rows, while counting is on. */
  counted: { sql: string; rows: number }[] | null = null;

  wrap(db: Database): Database {
    const transaction = (work: () => void) => {
      if (this.dead || this.failNext > 0) {
        this.failNext--;
        throw diskError();
      }
      this.writes++;
      const dies = this.dieAt?.write === this.writes ? this.dieAt.when : null;
      if (dies === null) return db.transaction(work);
      this.dead = true;
      if (dies === "after") db.transaction(work);
      throw diskError();
    };
    return { ...db, transaction, prepare: (sql) => this.#counting(sql, db.prepare(sql)) };
  }

  #counting(sql: string, statement: Statement): Statement {
    const note = (rows: number) => this.counted?.push({ sql, rows });
    const noted = <T>(value: T, rows: number): T => {
      note(rows);
      return value;
    };
    return {
      run: (...values) => noted(statement.run(...values), 0),
      get(...values) {
        const row = statement.get(...values);
        return noted(row, row === undefined ? 0 : 1);
      },
      all(...values) {
        const rows = statement.all(...values);
        return noted(rows, rows.length);
      },
      *iterate(...values): IterableIterator<SqlRow> {
        let rows = 0;
        for (const row of statement.iterate(...values)) {
          rows++;
          yield row;
        }
        note(rows);
      },
    };
  }
}

/** The error of SQLite when a disk refuses a write. */
function diskError(): Error {
  return Object.assign(new Error("disk I/O error"), { errcode: 10 });
}

export type FaultyServer = Omit<ConductorServer, "server"> & { faults: Faults; db: Database };

export async function startFaulty(faults = new Faults(), before?: { clock: TestClock; data: string }): Promise<FaultyServer> {
  const clock = before?.clock ?? new TestClock();
  const data = before?.data ?? temporaryFolder();
  let raw: Database | undefined;
  const engine = await openEngine({
    directory: data,
    clock,
    random: () => 0.5,
    open: async (file, options) => {
      raw = await openDatabase(file, { ...options, synchronous: "NORMAL" });
      return faults.wrap(raw);
    },
  });
  const logger = createLogger({ level: "error", format: "text", write: () => {}, clock });
  const door = await openServerPort({
    engine,
    protocols: await protocolsOn(engine),
    options: { port: 0 },
    tokens: [],
    logger,
    metrics: createMetrics(),
  });
  const agent = new Agent({ keepAlive: true });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= (async () => {
      agent.destroy();
      engine.board.dismiss();
      await door.close();
      // A dead process cannot write its remaining state.
      await engine.close().catch(() => undefined);
    })();
    return closed;
  };
  onTestFinished(close);
  const settle = async () => {
    for (let round = 0; round < 30; round++) await clock.advance(0);
  };
  return { clock, data, url: door.url, close, faults, db: raw as Database, ...conductorConversation(door.url, agent, settle) };
}
