// The PostgreSQL store for the contract suite: each place is a schema.

import { type RowStore, Unavailable } from "../../src/engine/rows.ts";
import type { Store } from "../../src/engine/store.ts";
import { openDataStore } from "../../src/server/data-store.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import type { TestPostgres } from "../support/postgres.ts";
import type { CommitProbe, StoreKind } from "./world.ts";

export function postgresSchemas(server: () => TestPostgres): StoreKind {
  return {
    async open({ place, probe, ...rest }) {
      const { rows, wasServed, close } = await openDatabase({ url: place as string, node: "test" });
      const loads = new Set<Promise<unknown>>();
      // The fields that the suite reads. The engine reads no others.
      const opened = {
        rows: counted(probed(rows, probe), loads),
        wasServed,
        close,
        checkRest() {},
        inWords: (error: unknown) => error,
      } as unknown as Store;
      const store = await openDataStore(opened, rest);
      return {
        ...{
          board: store.board,
          runs: store.runs,
          parts: store.parts,
          signals: store.runs.signals,
          schedules: store.schedules,
          ticks: store.ticks,
        },
        async quiet() {
          for (await store.commit.quiet(); loads.size > 0; await store.commit.quiet()) await Promise.allSettled(loads);
        },
        commits: () => store.commit.commits,
        recover: () => store.recover(),
        readDeadlines: (name: string) => store.readDeadlines(name),
        close: () => store.close(),
      };
    },
    keeps: true,
    place: () => server().newUrl(),
    copy: (place) => copySchema(server(), place),
  };
}

/** Rows that call the probe at every commit. */
function probed(rows: RowStore, probe: CommitProbe): RowStore {
  return {
    ...rows,
    async commit(write) {
      await rows.commit(() => {
        write();
        probeBefore(probe);
      });
      await probe.after?.();
    },
  };
}

/** Rows whose loads can be waited for. */
function counted(rows: RowStore, loads: Set<Promise<unknown>>): RowStore {
  return {
    ...rows,
    load(tx, missing) {
      const loading = rows.load(tx, missing);
      loads.add(loading);
      return loading.finally(() => loads.delete(loading));
    },
  };
}

/** The suite simulates a full disk with the error that SQLite reports. */
function probeBefore(probe: CommitProbe): void {
  try {
    probe.before?.();
  } catch (error) {
    throw (error as { errcode?: unknown }).errcode === 13 ? new Unavailable(error as Error) : error;
  }
}

/** A copy of a schema in its state after a crash at this time. */
export async function copySchema(server: TestPostgres, url: string): Promise<string> {
  const to = server.newUrl();
  await server.query(`
    DO $$ DECLARE name text; BEGIN
      CREATE SCHEMA ${schemaOf(to)};
      FOR name IN SELECT table_name FROM information_schema.tables WHERE table_schema = '${schemaOf(url)}' LOOP
        EXECUTE format('CREATE TABLE ${schemaOf(to)}.%I (LIKE ${schemaOf(url)}.%I INCLUDING ALL)', name, name);
        EXECUTE format('INSERT INTO ${schemaOf(to)}.%I SELECT * FROM ${schemaOf(url)}.%I', name, name);
      END LOOP;
    END $$
  `);
  return to;
}

function schemaOf(url: string): string {
  return new URL(url).searchParams.get("schema") as string;
}
