// The tables, as numbered migrations. Migrations only add, so that a server of the previous version can still work on the tables. Names and
// columns are the same in every store. Texts are sorted by their bytes. The tables that a server reads when it takes over the data have a
// column for the shard; so far there is one shard.

import { randomBytes, randomUUID } from "node:crypto";
import { LongshoreError } from "../../core/errors.ts";
import { packageVersion } from "../../core/version.ts";
import type { ColumnType } from "./binary.ts";
import type { PgClient } from "./package.ts";

const text = `TEXT COLLATE "C"`;
const shard = "shard SMALLINT NOT NULL DEFAULT 0";
/**
 * Tables whose rows change often. They get room for new versions of a row on the same page, and a vacuum that starts early and does not
 * pause.
 */
const busy = "WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)";

const migrations: readonly string[] = [
  `
  CREATE TABLE shard (
    id SMALLINT PRIMARY KEY, epoch BIGINT NOT NULL, token UUID NOT NULL, seq BIGINT NOT NULL, node TEXT, expires_at TIMESTAMPTZ NOT NULL
  ) WITH (fillfactor = 50, autovacuum_vacuum_cost_delay = 0);
  CREATE TABLE node (
    id TEXT PRIMARY KEY, address TEXT NOT NULL, version TEXT NOT NULL, speaks INT[] NOT NULL, started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
  );
  INSERT INTO shard VALUES (0, 0, gen_random_uuid(), 0, NULL, '-infinity');

  CREATE TABLE definition (
    id ${text} PRIMARY KEY, name ${text} NOT NULL, version BIGINT NOT NULL, dialect ${text} NOT NULL, source ${text} NOT NULL,
    created_at BIGINT NOT NULL, UNIQUE (name, version)
  );
  CREATE INDEX definition_first ON definition (created_at, name) WHERE version = 1;

  CREATE TABLE run (
    id ${text} PRIMARY KEY, workflow ${text} NOT NULL, definition_id ${text} NOT NULL, state ${text} NOT NULL, input ${text} NOT NULL,
    output ${text}, error ${text}, created_at BIGINT NOT NULL, ended_at BIGINT, end_by BIGINT, left_count BIGINT NOT NULL,
    failed_count BIGINT NOT NULL, retries BIGINT NOT NULL, alias ${text}, parent_task_id ${text}, parent_attempt BIGINT NOT NULL,
    active_count BIGINT NOT NULL, recorded_count BIGINT NOT NULL, counted_from BIGINT NOT NULL, priority BIGINT NOT NULL, variables ${text},
    settings ${text}, backlog ${text}, skips ${text}, root_id ${text}, ${shard}
  ) ${busy};
  CREATE INDEX run_workflow ON run (workflow, id);
  CREATE INDEX run_open ON run (workflow, id) WHERE ended_at IS NULL;
  CREATE INDEX run_open_id ON run (id) WHERE ended_at IS NULL;
  CREATE UNIQUE INDEX run_parent ON run (parent_task_id, parent_attempt) WHERE parent_task_id IS NOT NULL;
  CREATE INDEX run_ended ON run (ended_at, id) WHERE ended_at IS NOT NULL;
  CREATE INDEX run_unsuccessful ON run (state, id) WHERE state IN ('failed', 'cancelled', 'timed-out');
  CREATE INDEX run_alias ON run (alias, id) WHERE alias IS NOT NULL;

  CREATE TABLE run_key (workflow ${text}, key ${text}, run_id ${text} NOT NULL, PRIMARY KEY (workflow, key));
  CREATE INDEX run_key_run ON run_key (run_id);

  CREATE TABLE task (
    id ${text} PRIMARY KEY, run_id ${text}, node BIGINT NOT NULL, step ${text} NOT NULL, lane ${text}, labels ${text}, priority BIGINT NOT NULL,
    state ${text} NOT NULL, sequence BIGINT NOT NULL, attempt BIGINT NOT NULL, first_attempt BIGINT NOT NULL, ordinal BIGINT NOT NULL,
    grant_count BIGINT NOT NULL, holder ${text}, term_ms BIGINT NOT NULL, failures BIGINT NOT NULL, lost BIGINT NOT NULL,
    deferrals BIGINT NOT NULL, policy ${text}, limits ${text}, hold_ms BIGINT, claim_ms BIGINT, end_ms BIGINT, posted_at BIGINT NOT NULL,
    attempt_at BIGINT NOT NULL, queued_at BIGINT NOT NULL, due_at BIGINT NOT NULL, started_at BIGINT, claimed_at BIGINT, ended_at BIGINT,
    claim_by BIGINT, hold_until BIGINT, end_by BIGINT, total_by BIGINT, closed_grant BIGINT NOT NULL, closed_by ${text}, closed_receipt ${text},
    fault ${text}, streamed BIGINT NOT NULL, error ${text}, ${shard}, input ${text} NOT NULL, output ${text}
  ) ${busy};
  CREATE INDEX task_open ON task (id) WHERE ended_at IS NULL;
  CREATE INDEX task_ended ON task (ended_at, id) WHERE ended_at IS NOT NULL AND run_id IS NULL;

  CREATE TABLE attempt (
    task_id ${text}, grant_count BIGINT, attempt BIGINT, closed_by ${text} NOT NULL, holder ${text}, error ${text}, queued_at BIGINT NOT NULL,
    started_at BIGINT, ended_at BIGINT NOT NULL, closed_receipt ${text}, input ${text}, output ${text}, fault ${text}, ordinal BIGINT NOT NULL,
    deferrals BIGINT NOT NULL, attempt_at BIGINT NOT NULL, due_at BIGINT NOT NULL, claimed_at BIGINT, state ${text},
    PRIMARY KEY (task_id, grant_count, attempt)
  );

  CREATE TABLE node_join (
    run_id ${text}, node BIGINT, left_count BIGINT NOT NULL, begun BIGINT NOT NULL, missed BIGINT NOT NULL, PRIMARY KEY (run_id, node)
  ) ${busy};

  CREATE TABLE message (id BIGINT PRIMARY KEY, body ${text} NOT NULL, ${shard}) ${busy};

  CREATE TABLE worker (
    id ${text} PRIMARY KEY, protocol ${text} NOT NULL, labels ${text} NOT NULL, registered_at BIGINT NOT NULL, seen_at BIGINT NOT NULL
  ) ${busy};

  CREATE TABLE log (
    id BIGINT PRIMARY KEY, task_id ${text} NOT NULL, run_id ${text}, attempt BIGINT NOT NULL, grant_count BIGINT NOT NULL, bytes BIGINT NOT NULL,
    chunks ${text} NOT NULL
  );
  CREATE INDEX log_task ON log (task_id, attempt, id);
  CREATE INDEX log_run ON log (run_id, id) WHERE run_id IS NOT NULL;

  CREATE TABLE blob (hash ${text} PRIMARY KEY, bytes BIGINT NOT NULL, created_at BIGINT NOT NULL, used_at BIGINT NOT NULL, note ${text});
  CREATE INDEX blob_used ON blob (used_at);
  -- Contents in pieces, not compressed: a piece is read without its neighbours. A name that begins with '+' is content on its way in or out.
  CREATE TABLE blob_chunk (hash ${text}, part INT, kept_at BIGINT NOT NULL, bytes BYTEA NOT NULL, PRIMARY KEY (hash, part));
  ALTER TABLE blob_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;

  CREATE TABLE pruned (id ${text} PRIMARY KEY, ${shard}) ${busy};

  CREATE TABLE hand_out (key ${text} NOT NULL, at BIGINT NOT NULL, until BIGINT NOT NULL, ${shard}) ${busy};
  CREATE INDEX hand_out_until ON hand_out (until);

  CREATE TABLE document (
    kind ${text}, name ${text}, version BIGINT, body ${text} NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
    PRIMARY KEY (kind, name, version)
  );

  CREATE TABLE part (
    task_id ${text}, life BIGINT, sequence BIGINT, uid ${text} NOT NULL, grant_count BIGINT NOT NULL, at BIGINT NOT NULL, value ${text} NOT NULL,
    PRIMARY KEY (task_id, life, sequence)
  );
  CREATE TABLE part_uid (task_id ${text}, life BIGINT, first BIGINT, hashes BYTEA NOT NULL, PRIMARY KEY (task_id, life, first));
  CREATE TABLE part_read (
    reader ${text}, reader_life BIGINT, source ${text}, source_life BIGINT, first BIGINT, last BIGINT NOT NULL,
    PRIMARY KEY (reader, reader_life, source, source_life, first)
  );

  CREATE TABLE bus_topic (id BIGINT PRIMARY KEY, name ${text} NOT NULL UNIQUE);
  CREATE TABLE bus_record (id BIGINT PRIMARY KEY, key ${text}, at BIGINT NOT NULL, value BYTEA NOT NULL);
  CREATE TABLE bus_group (
    name ${text}, topic BIGINT, position BIGINT NOT NULL, done ${text} NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (topic, name)
  ) ${busy};

  CREATE TABLE outbox (
    id BIGINT PRIMARY KEY, print ${text} NOT NULL UNIQUE, topic ${text} NOT NULL, key ${text} NOT NULL, dedup_id ${text} NOT NULL,
    retry BIGINT NOT NULL, owner ${text} NOT NULL, state ${text} NOT NULL, attempts BIGINT NOT NULL, due_at BIGINT NOT NULL, error ${text},
    ended_at BIGINT, value BYTEA NOT NULL
  ) ${busy};
  CREATE INDEX outbox_pending ON outbox (id) WHERE state = 'pending';
  CREATE INDEX outbox_ended ON outbox (state, ended_at) WHERE ended_at IS NOT NULL;

  CREATE TABLE property (name ${text} PRIMARY KEY, value ${text} NOT NULL);
  CREATE TABLE amount (name ${text} PRIMARY KEY, value BIGINT NOT NULL) ${busy};
  `,
  `
  ALTER TABLE task ADD COLUMN signal ${text};
  CREATE INDEX task_signal ON task (run_id, signal, sequence) WHERE signal IS NOT NULL AND ended_at IS NULL;
  ALTER TABLE run ADD COLUMN signals ${text};
  CREATE TABLE signal (
    run_id ${text}, number BIGINT, name ${text} NOT NULL, key ${text}, sent_at BIGINT NOT NULL, taken_at BIGINT, task_id ${text}, attempt BIGINT,
    value ${text}, PRIMARY KEY (run_id, number)
  );
  CREATE INDEX signal_kept ON signal (run_id, name, number) WHERE taken_at IS NULL;
  CREATE UNIQUE INDEX signal_key ON signal (run_id, key) WHERE key IS NOT NULL;
  `,
  `
  ALTER TABLE task ADD COLUMN command ${text};
  `,
  `
  CREATE TABLE schedule (
    name ${text} PRIMARY KEY, source ${text}, workflow ${text} NOT NULL, input ${text} NOT NULL, rules ${text} NOT NULL,
    created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, paused ${text}, next_at BIGINT, state ${text} NOT NULL, ${shard}
  ) ${busy};
  CREATE INDEX schedule_workflow ON schedule (workflow, name);
  CREATE INDEX schedule_source ON schedule (source, name) WHERE source IS NOT NULL;
  `,
  `
  ALTER TABLE run ADD COLUMN start_at BIGINT;
  `,
  `
  CREATE TABLE audit (
    number BIGINT PRIMARY KEY, at BIGINT NOT NULL, caller ${text}, via ${text} NOT NULL, verb ${text} NOT NULL, kind ${text} NOT NULL,
    target ${text} NOT NULL, was ${text}, became ${text}, reason ${text}
  );
  CREATE INDEX audit_target ON audit (kind, target, number);
  CREATE INDEX audit_caller ON audit (caller, number) WHERE caller IS NOT NULL;
  CREATE TABLE bulk (id ${text} PRIMARY KEY, body ${text} NOT NULL, state ${text} NOT NULL, ended_at BIGINT) ${busy};
  CREATE INDEX bulk_open ON bulk (id) WHERE ended_at IS NULL;
  `,
  `
  DROP INDEX task_open;
  CREATE INDEX task_open ON task (id) WHERE ended_at IS NULL AND lane IS NOT NULL;
  CREATE INDEX task_wait ON task (id) WHERE ended_at IS NULL AND lane IS NULL;
  CREATE INDEX task_sleep ON task (due_at, id) WHERE ended_at IS NULL AND lane IS NULL AND due_at > queued_at;
  CREATE INDEX task_claim_by ON task (claim_by, id) WHERE ended_at IS NULL AND lane IS NULL AND claim_by IS NOT NULL;
  CREATE INDEX task_total_by ON task (total_by, id) WHERE ended_at IS NULL AND lane IS NULL AND total_by IS NOT NULL;
  CREATE INDEX run_start_at ON run (start_at, id) WHERE ended_at IS NULL AND start_at IS NOT NULL;
  CREATE INDEX run_end_by ON run (end_by, id) WHERE ended_at IS NULL AND end_by IS NOT NULL;
  CREATE INDEX run_halted ON run (workflow, state) WHERE state IN ('paused', 'blocked');
  CREATE INDEX run_root ON run (root_id) WHERE ended_at IS NULL AND root_id IS NOT NULL;
  INSERT INTO amount VALUES ('places', (SELECT coalesce(max(sequence), 0) FROM task WHERE ended_at IS NULL))
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
  `,
  `
  -- The runs that one limit counts, and the place of a run that waits for its turn.
  ALTER TABLE run ADD COLUMN gate ${text};
  ALTER TABLE run ADD COLUMN turn BIGINT;
  CREATE INDEX run_turn ON run (gate, turn) WHERE turn IS NOT NULL;
  CREATE TABLE gate (name ${text} PRIMARY KEY, state ${text} NOT NULL) ${busy};
  `,
];

export const schemaVersion: number = migrations.length;
/** The oldest version whose servers may still work on these tables. */
const oldestReader = 1;

/** Makes the schema, or updates it to the newest version. Each migration is a transaction; other servers wait meanwhile. */
export async function migrate(client: PgClient, schema: string): Promise<void> {
  await client.query(`
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('longshore schema'), hashtext('${schema}'));
    -- Only a role that may create schemas may say IF NOT EXISTS, also where it is there.
    DO $$ BEGIN IF to_regnamespace('${schema}') IS NULL THEN CREATE SCHEMA ${schema}; END IF; END $$;
    CREATE TABLE IF NOT EXISTS ${schema}.meta (
      one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), schema_version INT NOT NULL, oldest_reader INT NOT NULL, cluster_id TEXT NOT NULL,
      secret BYTEA NOT NULL
    );
    INSERT INTO ${schema}.meta VALUES (true, 0, 1, '${randomUUID()}', '\\x${randomBytes(32).toString("hex")}') ON CONFLICT DO NOTHING;
    COMMIT;
  `);
  for (;;) {
    await client.query("BEGIN");
    try {
      await client.query(`SELECT pg_advisory_xact_lock(hashtext('longshore schema'), hashtext('${schema}'))`);
      const version = await versionOf(client, schema);
      const next = migrations[version];
      if (next !== undefined) {
        await client.query(`SET LOCAL search_path TO ${schema}`);
        await client.query(next);
        await client.query(`UPDATE meta SET schema_version = ${version + 1}, oldest_reader = ${oldestReader}`);
      }
      await client.query("COMMIT");
      if (next === undefined) return;
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    }
  }
}

async function versionOf(client: PgClient, schema: string): Promise<number> {
  const { rows } = await client.query(`SELECT schema_version, oldest_reader FROM ${schema}.meta`);
  const version = Number(rows[0]?.schema_version);
  const oldest = Number(rows[0]?.oldest_reader);
  if (oldest <= schemaVersion) return Math.min(version, schemaVersion);
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The schema ${schema} has version ${version}, which needs a Longshore that knows version ${oldest}; Longshore ${packageVersion()} knows ` +
      `${schemaVersion}. Install a newer version.`,
  );
}

/** The type of each column, by table. */
export type Catalog = ReadonlyMap<string, ReadonlyMap<string, ColumnType>>;

export async function readCatalog(client: PgClient, schema: string): Promise<Catalog> {
  const { rows } = await client.query(
    `SELECT table_name, column_name, udt_name FROM information_schema.columns WHERE table_schema = '${schema}'`,
  );
  const catalog = new Map<string, Map<string, ColumnType>>();
  for (const { table_name: table, column_name: column, udt_name: type } of rows as { [name: string]: string }[]) {
    const columns = catalog.get(table as string) ?? new Map<string, ColumnType>();
    catalog.set(table as string, columns.set(column as string, type as ColumnType));
  }
  return catalog;
}
