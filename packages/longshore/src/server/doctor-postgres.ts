// Checks the environment of a server whose data are in PostgreSQL. It changes nothing and may run next to a running server.

import { formatDuration } from "../core/duration.ts";
import { toError } from "../core/errors.ts";
import { readAddress } from "../store/postgres/address.ts";
import { examinePostgres, type PostgresData, type PostgresExamination } from "../store/postgres/examine.ts";
import { weaknessesOf } from "../store/postgres/settings.ts";
import { type Finding, nodeVersion } from "./doctor.ts";

/**
 * Maximum difference between PostgreSQL's clock and that of this machine. Programs here show times of PostgreSQL, so a larger difference
 * confuses people.
 */
const clockMsMax = 1_000;

export async function diagnosePostgres(url: string): Promise<Finding[]> {
  const { shown } = readAddress(url);
  try {
    const found = await examinePostgres(url);
    return [nodeVersion(), ...findingsOf(found, shown)];
  } catch (error) {
    return [nodeVersion(), { about: "PostgreSQL", state: "bad", ...halves(toError(error).message) }];
  }
}

/** The text before the first of these words is what was seen; the rest is what to do. */
function halves(message: string): Pick<Finding, "seen" | "advice"> {
  const at = message.search(/ (?:Start|Install|Give|Name|Run|In) /);
  if (at === -1) return { seen: message, advice: "Correct the address, or the rights of the role." };
  return { seen: message.slice(0, at).replace(/\.$/, ""), advice: message.slice(at + 1) };
}

function findingsOf(found: PostgresExamination, shown: string): Finding[] {
  const { version, isVacuumOn } = found;
  return [
    { about: "PostgreSQL", state: "ok", seen: `${version} at ${shown}`, figures: { version } },
    rights(found),
    durability(found),
    sessions(found),
    connections(found),
    isVacuumOn
      ? { about: "Vacuum", state: "ok", seen: "autovacuum is on" }
      : {
          about: "Vacuum",
          state: "warn",
          seen: "autovacuum is off",
          advice: "Tables grow without end: set autovacuum and track_counts to on.",
        },
    clock(found),
    data(found),
  ];
}

function rights({ missingRight }: PostgresExamination): Finding {
  const about = "Rights";
  if (missingRight === null) return { about, state: "ok", seen: "the role may read and write" };
  return { about, state: "bad", seen: `the role may not ${missingRight}`, advice: "Grant it, or make the role the owner of the schema." };
}

function durability({ settings }: PostgresExamination): Finding {
  const about = "Durability";
  const { synchronousCommit, fsync, fullPageWrites } = settings;
  const seen = `synchronous_commit ${synchronousCommit}, fsync ${fsync}, full_page_writes ${fullPageWrites}`;
  const figures = { synchronousCommit, fsync, fullPageWrites };
  const weaknesses = weaknessesOf(settings);
  if (weaknesses.length === 0) return { about, state: "ok", seen, figures };
  return { about, state: "warn", seen, figures, advice: weaknesses.join(" ") };
}

function sessions({ keepsSessions }: PostgresExamination): Finding {
  const about = "Sessions";
  if (keepsSessions) return { about, state: "ok", seen: "a session keeps its process: there is no transaction pooler in between" };
  const advice =
    "Use the address of PostgreSQL itself, or of a pool in session mode: a session must keep its locks and prepared statements.";
  return { about, state: "bad", seen: "there is a transaction pooler in between: a session changes its process", advice };
}

function connections({ connections: { max, used, needed }, data: served }: PostgresExamination): Finding {
  const about = "Connections";
  const free = Math.max(0, max - used);
  const seen = `${free} of ${max} free; a server needs ${needed}`;
  const figures = { max, used, needed };
  if (free >= 2 * needed) return { about, state: "ok", seen, figures };
  const advice = "Raise max_connections, or the limit of the role or the database.";
  if (free >= needed) return { about, state: "warn", seen, figures, advice: `A second server would find no room. ${advice}` };
  return { about, state: served?.owner.hasLock ? "warn" : "bad", seen, figures, advice };
}

function clock({ clockMs: { ahead, roundTrip } }: PostgresExamination): Finding {
  const about = "Clock";
  const figures = { aheadMs: ahead, roundTripMs: roundTrip };
  const off = Math.abs(ahead);
  if (off <= Math.max(clockMsMax, roundTrip))
    return { about, state: "ok", seen: `as PostgreSQL's, within ${formatDuration(Math.max(off, roundTrip))}`, figures };
  const seen = `PostgreSQL's is ${formatDuration(off)} ${ahead > 0 ? "ahead" : "behind"}`;
  return { about, state: "warn", seen, figures, advice: "The server uses PostgreSQL's clock. Set both machines by NTP." };
}

function data({ data: found }: PostgresExamination): Finding {
  const about = "Data";
  if (found === null) return { about, state: "ok", seen: "no schema yet: the first start makes it" };
  const { schemaVersion, knownVersion, oldestReader, owner, marks } = found;
  const figures = { schemaVersion, epoch: owner.epoch, leaseMs: owner.leaseMs, ...(owner.node === null ? {} : { owner: owner.node }) };
  const seen = `schema version ${schemaVersion}, ${ownerText(owner)}`;
  if (oldestReader > knownVersion)
    return { about, state: "bad", seen, figures, advice: `This Longshore knows version ${knownVersion}: install a newer one.` };
  if (marks.incomplete !== null)
    return {
      about,
      state: "bad",
      seen: `an incomplete copy of ${marks.incomplete.place}`,
      figures,
      advice: "Run the same `longshore migrate` again.",
    };
  if (marks.moved !== null)
    return { about, state: "bad", seen: `moved to ${marks.moved.place} at ${marks.moved.at}`, figures, advice: "Start the server there." };
  return { about, state: "ok", seen, figures };
}

function ownerText({ node, epoch, leaseMs, hasLock }: PostgresData["owner"]): string {
  if (node === null) return `no server has it (epoch ${epoch})`;
  if (leaseMs > 0) return `${node} has it (epoch ${epoch}), its lease ends in ${formatDuration(leaseMs)}`;
  const since = `its lease ended ${formatDuration(-leaseMs)} ago`;
  return hasLock
    ? `${node} has it (epoch ${epoch}) and hangs: ${since}`
    : `no server has it: ${node} ended without a hand-over, and ${since}`;
}
