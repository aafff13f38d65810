// The tables, as numbered migrations. A file records the number of its last migration in `user_version`.

import { LongshoreError } from "../../core/errors.ts";
import { packageVersion } from "../../core/version.ts";
import type { Database } from "./driver.ts";

/** Fills `amount` with the sums over tables. Each row counts the same as in the store: a test compares the sums. */
const countSums = `
  INSERT INTO amount SELECT 'bytes of blobs', coalesce(sum(4096 + bytes + coalesce(octet_length(note), 0)), 0) FROM blob;
  INSERT INTO amount SELECT 'bytes of logs', coalesce(sum(bytes), 0) FROM log;
  INSERT INTO amount SELECT 'bytes of documents', coalesce(sum(64 + octet_length(name) + octet_length(body)), 0) FROM document;
  INSERT INTO amount SELECT 'documents of ' || kind, count(*) FROM document GROUP BY kind;
  INSERT INTO amount SELECT 'bytes of parts', coalesce(sum(64 + octet_length(uid) + octet_length(value)), 0) FROM part;
  INSERT INTO amount SELECT 'bytes of bus', coalesce(sum(64 + coalesce(octet_length(key), 0) + octet_length(value)), 0) FROM bus_record;
  INSERT INTO amount SELECT 'bytes of attempts', coalesce(sum(
    64 + coalesce(octet_length(input), 0) + coalesce(octet_length(output), 0) + coalesce(octet_length(error), 0)), 0) FROM attempt;
`;

const countLogs = "INSERT OR REPLACE INTO amount VALUES ('last log', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'log'), 0));";

/** The last place that a task may have: places of waits are not read at the start. */
const countPlaces =
  "INSERT OR REPLACE INTO amount VALUES ('places', (SELECT coalesce(max(sequence), 0) FROM task WHERE ended_at IS NULL));";

/** Computes all amounts again from the tables. */
export const countAmounts: string = `DELETE FROM amount; ${countSums} ${countLogs} ${countPlaces}`;

const migrations: readonly string[] = [
  `
  CREATE TABLE definition (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, dialect TEXT NOT NULL, source TEXT NOT NULL,
    created_at INTEGER NOT NULL, UNIQUE (name, version)
  ) WITHOUT ROWID;
  -- Names in the order in which they were first defined: pages of them stay put when more are added.
  CREATE INDEX definition_first ON definition (created_at, name) WHERE version = 1;

  CREATE TABLE run (
    id TEXT PRIMARY KEY, workflow TEXT NOT NULL, definition_id TEXT NOT NULL REFERENCES definition, state TEXT NOT NULL, input TEXT NOT NULL,
    output TEXT, error TEXT, created_at INTEGER NOT NULL, ended_at INTEGER, end_by INTEGER, left_count INTEGER NOT NULL,
    failed_count INTEGER NOT NULL, retries INTEGER NOT NULL, alias TEXT, parent_task_id TEXT, parent_attempt INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX run_workflow ON run (workflow, id);
  CREATE INDEX run_open ON run (workflow) WHERE ended_at IS NULL;
  CREATE UNIQUE INDEX run_parent ON run (parent_task_id, parent_attempt) WHERE parent_task_id IS NOT NULL;
  -- Oldest ending first, for retention: about 1 us a run, within the noise of a commit.
  CREATE INDEX run_ended ON run (ended_at, id) WHERE ended_at IS NOT NULL;
  CREATE INDEX run_unsuccessful ON run (state, id) WHERE state IN ('failed', 'cancelled', 'timed-out');
  CREATE INDEX run_alias ON run (alias, id) WHERE alias IS NOT NULL;

  CREATE TABLE run_key (workflow TEXT NOT NULL, key TEXT NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (workflow, key)) WITHOUT ROWID;
  CREATE INDEX run_key_run ON run_key (run_id);

  -- One row per activation of a step; the key of a run's step is '<run id>.<node>', so a run's rows lie side by side.
  CREATE TABLE task (
    id TEXT PRIMARY KEY, run_id TEXT, node INTEGER NOT NULL, step TEXT NOT NULL, lane TEXT, labels TEXT, priority INTEGER NOT NULL,
    state TEXT NOT NULL, sequence INTEGER NOT NULL, attempt INTEGER NOT NULL, grant_count INTEGER NOT NULL, holder TEXT, term_ms INTEGER NOT NULL,
    input TEXT NOT NULL, output TEXT, error TEXT, failures INTEGER NOT NULL, lost INTEGER NOT NULL,
    deferrals INTEGER NOT NULL, policy TEXT, limits TEXT, claim_ms INTEGER, end_ms INTEGER, posted_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL, due_at INTEGER NOT NULL, started_at INTEGER, claimed_at INTEGER, ended_at INTEGER, claim_by INTEGER, hold_until INTEGER, end_by INTEGER, total_by INTEGER,
    closed_grant INTEGER NOT NULL, closed_by TEXT
  ) WITHOUT ROWID;
  CREATE INDEX task_open ON task (id) WHERE ended_at IS NULL;
  CREATE INDEX task_ended ON task (ended_at, id, run_id) WHERE ended_at IS NOT NULL AND run_id IS NULL;

  -- Attempts that closed and were followed by another; the newest attempt of a task is in its own row.
  CREATE TABLE attempt (
    task_id TEXT NOT NULL, grant_count INTEGER NOT NULL, attempt INTEGER NOT NULL, closed_by TEXT NOT NULL, holder TEXT, error TEXT,
    queued_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER NOT NULL, PRIMARY KEY (task_id, grant_count, attempt)
  ) WITHOUT ROWID;

  CREATE TABLE node_join (run_id TEXT NOT NULL, node INTEGER NOT NULL, left_count INTEGER NOT NULL, PRIMARY KEY (run_id, node)) WITHOUT ROWID;

  CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT NOT NULL);

  CREATE TABLE worker (id TEXT PRIMARY KEY, protocol TEXT NOT NULL, labels TEXT NOT NULL, registered_at INTEGER NOT NULL, seen_at INTEGER NOT NULL) WITHOUT ROWID;

  -- One row per pushed batch. AUTOINCREMENT: a position once given out is never used again, whatever was pruned. The texts stand
  -- last, so that reading the other columns never walks through them.
  CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_id TEXT, attempt INTEGER NOT NULL, grant_count INTEGER NOT NULL,
    bytes INTEGER NOT NULL, chunks TEXT NOT NULL
  );
  CREATE INDEX log_task ON log (task_id, attempt, id);
  CREATE INDEX log_run ON log (run_id, id) WHERE run_id IS NOT NULL;

  CREATE TABLE blob (hash TEXT PRIMARY KEY, bytes INTEGER NOT NULL, created_at INTEGER NOT NULL, used_at INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX blob_used ON blob (used_at);

  -- Runs and tasks that are gone for every reader, but whose rows in other tables are still being removed, a slice at a time.
  CREATE TABLE pruned (id TEXT PRIMARY KEY) WITHOUT ROWID;
  `,
  `
  ALTER TABLE task ADD COLUMN closed_receipt TEXT;
  ALTER TABLE attempt ADD COLUMN closed_receipt TEXT;

  -- Hand-outs under keys with a rate, for as long as their window counts them.
  CREATE TABLE hand_out (key TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL);
  CREATE INDEX hand_out_until ON hand_out (until);
  `,
  `
  ALTER TABLE run ADD COLUMN active_count INTEGER NOT NULL DEFAULT 0;
  UPDATE run SET active_count = (SELECT count(*) FROM task WHERE task.run_id = run.id AND task.ended_at IS NULL) WHERE ended_at IS NULL;
  ALTER TABLE run ADD COLUMN recorded_count INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN counted_from INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN variables TEXT;
  ALTER TABLE run ADD COLUMN settings TEXT;
  ALTER TABLE run ADD COLUMN backlog TEXT;
  ALTER TABLE run ADD COLUMN skips TEXT;

  ALTER TABLE task ADD COLUMN first_attempt INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE task ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE task ADD COLUMN fault TEXT;
  ALTER TABLE task ADD COLUMN hold_ms INTEGER;
  ALTER TABLE task ADD COLUMN attempt_at INTEGER NOT NULL DEFAULT 0;

  -- The input only where it differs from the one that followed.
  ALTER TABLE attempt ADD COLUMN input TEXT;
  ALTER TABLE attempt ADD COLUMN output TEXT;
  ALTER TABLE attempt ADD COLUMN fault TEXT;
  ALTER TABLE attempt ADD COLUMN ordinal INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE attempt ADD COLUMN deferrals INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE attempt ADD COLUMN attempt_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE attempt ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE attempt ADD COLUMN claimed_at INTEGER;

  ALTER TABLE node_join ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;

  CREATE TABLE document (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, name, version)
  ) WITHOUT ROWID;
  `,
  `
  ALTER TABLE blob ADD COLUMN note TEXT;
  `,
  `
  -- What tasks have produced before their end. A life of a task is named by its first attempt. The value stands last, so that nothing
  -- else is read through it. With rowids: a tree without them takes rows of up to a kilobyte, and gives each larger one a page of its own,
  -- which made a part of 1 kB three times as dear (18 us of CPU against 6).
  CREATE TABLE part (
    task_id TEXT NOT NULL, life INTEGER NOT NULL, sequence INTEGER NOT NULL, uid TEXT NOT NULL, grant_count INTEGER NOT NULL, at INTEGER NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (task_id, life, sequence)
  );
  -- Hashes of the uids of parts, four bytes each, from the part with this number on: a row for each put.
  CREATE TABLE part_uid (
    task_id TEXT NOT NULL, life INTEGER NOT NULL, first INTEGER NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (task_id, life, first)
  ) WITHOUT ROWID;

  -- Whether its run was told of the first; and upstreams that a node has to do without.
  ALTER TABLE task ADD COLUMN streamed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE node_join ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;

  -- Stretches of parts that a reading task has finished with.
  CREATE TABLE part_read (
    reader TEXT NOT NULL, reader_life INTEGER NOT NULL, source TEXT NOT NULL, source_life INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (reader, reader_life, source, source_life, first)
  ) WITHOUT ROWID;
  `,
  `
  CREATE TABLE bus_topic (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  -- The id is the topic's times 2^40 plus the number of the record, so a topic is one stretch of the tree.
  CREATE TABLE bus_record (id INTEGER PRIMARY KEY, key TEXT, at INTEGER NOT NULL, value BLOB NOT NULL);
  -- All records up to the position are done; those beyond it that are done as well are in a list of ranges.
  CREATE TABLE bus_group (
    name TEXT NOT NULL, topic INTEGER NOT NULL REFERENCES bus_topic, position INTEGER NOT NULL, done TEXT NOT NULL, seen_at INTEGER NOT NULL,
    PRIMARY KEY (topic, name)
  ) WITHOUT ROWID;
  `,
  `
  CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, print TEXT NOT NULL UNIQUE, topic TEXT NOT NULL, key TEXT NOT NULL, dedup_id TEXT NOT NULL, retry INTEGER NOT NULL,
    owner TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL, due_at INTEGER NOT NULL, error TEXT, ended_at INTEGER, value BLOB NOT NULL
  );
  CREATE INDEX outbox_pending ON outbox (id) WHERE state = 'pending';
  CREATE INDEX outbox_ended ON outbox (state, ended_at) WHERE ended_at IS NOT NULL;
  `,
  `
  -- Commands have a lane that no task of another dialect can stand on; one that is merely called \`command\` stays where it is.
  UPDATE task SET lane = '$command' WHERE ended_at IS NULL AND lane = 'command' AND run_id IN (
    SELECT run.id FROM run JOIN definition ON definition.id = run.definition_id WHERE definition.dialect = 'workflow-graph'
  );
  `,
  `
  -- Facts about the file itself, by name.
  CREATE TABLE property (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  `,
  `
  -- The run at the top of those around it.
  ALTER TABLE run ADD COLUMN root_id TEXT;
  `,
  `
  -- How the task ended with this attempt: a completion that came after a cancel is not one that was accepted. Null before this version.
  ALTER TABLE attempt ADD COLUMN state TEXT;
  `,
  `
  -- Sums over other tables, written with the rows that change them: amounts.ts. What each row counts is as stored-bytes.ts and its users have it.
  CREATE TABLE amount (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  ${countSums}
  `,
  `
  -- How many logs there have ever been.
  ${countLogs}
  `,
  `
  -- The name of the signal that a record waits for; and how many signals a run has.
  ALTER TABLE task ADD COLUMN signal TEXT;
  CREATE INDEX task_signal ON task (run_id, signal, sequence) WHERE signal IS NOT NULL AND ended_at IS NULL;
  ALTER TABLE run ADD COLUMN signals TEXT;

  -- A signal that was taken has no value: the step that took it has.
  CREATE TABLE signal (
    run_id TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, key TEXT, sent_at INTEGER NOT NULL, taken_at INTEGER, task_id TEXT,
    attempt INTEGER, value TEXT, PRIMARY KEY (run_id, number)
  );
  CREATE INDEX signal_kept ON signal (run_id, name, number) WHERE taken_at IS NULL;
  CREATE UNIQUE INDEX signal_key ON signal (run_id, key) WHERE key IS NOT NULL;
  `,
  `
  -- What a task is in the run of a durable function.
  ALTER TABLE task ADD COLUMN command TEXT;
  `,
  `
  -- The rules of a schedule, when it ticks next, and how far it has come. The first five columns after the name change only with its rules.
  CREATE TABLE schedule (
    name TEXT PRIMARY KEY, source TEXT, workflow TEXT NOT NULL, input TEXT NOT NULL, rules TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, paused TEXT, next_at INTEGER, state TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX schedule_workflow ON schedule (workflow, name);
  CREATE INDEX schedule_source ON schedule (source, name) WHERE source IS NOT NULL;
  `,
  `
  -- When a run that was started with a delay begins.
  ALTER TABLE run ADD COLUMN start_at INTEGER;
  `,
  `
  -- Who ordered what, and what changed by it: written in the transaction of the order.
  CREATE TABLE audit (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, caller TEXT, via TEXT NOT NULL, verb TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
    was TEXT, became TEXT, reason TEXT
  );
  CREATE INDEX audit_target ON audit (kind, target, number);
  CREATE INDEX audit_caller ON audit (caller, number) WHERE caller IS NOT NULL;

  -- Orders to many runs or dead letters: what was ordered, and how far it has come.
  CREATE TABLE bulk (id TEXT PRIMARY KEY, body TEXT NOT NULL, state TEXT NOT NULL, ended_at INTEGER) WITHOUT ROWID;
  CREATE INDEX bulk_open ON bulk (id) WHERE ended_at IS NULL;
  `,
  `
  -- Two indexes, so that the start of the server reads no row of a wait.
  DROP INDEX task_open;
  CREATE INDEX task_open ON task (id) WHERE ended_at IS NULL AND lane IS NOT NULL;
  CREATE INDEX task_wait ON task (id) WHERE ended_at IS NULL AND lane IS NULL;
  -- The deadlines of waits and of runs, which are read when they come near.
  CREATE INDEX task_sleep ON task (due_at, id) WHERE ended_at IS NULL AND lane IS NULL AND due_at > queued_at;
  CREATE INDEX task_claim_by ON task (claim_by, id) WHERE ended_at IS NULL AND lane IS NULL AND claim_by IS NOT NULL;
  CREATE INDEX task_total_by ON task (total_by, id) WHERE ended_at IS NULL AND lane IS NULL AND total_by IS NOT NULL;
  CREATE INDEX run_start_at ON run (start_at, id) WHERE ended_at IS NULL AND start_at IS NOT NULL;
  CREATE INDEX run_end_by ON run (end_by, id) WHERE ended_at IS NULL AND end_by IS NOT NULL;
  -- Few runs are in these states, and few runs are children.
  CREATE INDEX run_halted ON run (workflow, state) WHERE state IN ('paused', 'blocked');
  CREATE INDEX run_root ON run (root_id, ended_at) WHERE ended_at IS NULL AND root_id IS NOT NULL;
  -- With the column of its condition, SQLite counts the entries of an index without reading the rows.
  DROP INDEX run_open;
  CREATE INDEX run_open ON run (workflow, id, ended_at) WHERE ended_at IS NULL;
  ${countPlaces}
  `,
  `
  -- A definition that has grown in a run is removed with the run: then SQLite looks whether another run refers to it.
  CREATE INDEX run_definition ON run (definition_id);
  `,
  `
  -- The runs that one limit counts, and the place of a run that waits for its turn.
  ALTER TABLE run ADD COLUMN gate TEXT;
  ALTER TABLE run ADD COLUMN turn INTEGER;
  CREATE INDEX run_turn ON run (gate, turn) WHERE turn IS NOT NULL;
  CREATE TABLE gate (name TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
  `,
];

export const schemaVersion = migrations.length;

/** Migrates a file to the newest version, one migration per transaction. `upTo` creates a file as an earlier version wrote it. */
export function migrate(db: Database, upTo: number = migrations.length, file = ":memory:"): void {
  const from = refuseNewer(db, file);
  migrations.slice(from, upTo).forEach((sql, at) => {
    db.transaction(() => {
      db.exec(sql);
      db.exec(`PRAGMA user_version=${from + at + 1}`);
    });
  });
}

/** Refuses a file of a newer version, and one with programs in SQL. Returns the schema version. `file` is the name in the error. */
export function checkSchema(db: Database, file: string): number {
  const version = refuseNewer(db, file);
  const strange = strangePart(db, file);
  if (strange !== null) throw new LongshoreError("LONGSHORE_DATA_DAMAGED", `${strange} Restore the folder from a backup.`);
  return version;
}

/** A trigger or view would run inside the server's own statements, without a limit. One sentence about it; null when there is none. */
export function strangePart(db: Database, file: string): string | null {
  const found = db.prepare("SELECT type, name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'").get();
  if (found === undefined) return null;
  return `The data file ${file} has the ${found.type === "table" ? "virtual table" : found.type} ${JSON.stringify(found.name)}, which Longshore did not make.`;
}

/** Returns the schema version. */
function refuseNewer(db: Database, file: string): number {
  const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  if (version > schemaVersion) throw tooNew(file, version);
  return version;
}

export function tooNew(file: string, version: number): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The data file ${file} has schema version ${version}, but Longshore ${packageVersion()} reads versions up to ${schemaVersion}: a newer ` +
      "Longshore wrote it. Install that version, or restore a backup from before the upgrade.",
  );
}
