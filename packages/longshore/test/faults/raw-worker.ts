// A worker that sends workflow-graph requests itself and records everything.
//
// It misbehaves on purpose: it reports on leases that it has lost, and some of its jobs run longer than their lease without a heartbeat.
// The server's fence must keep the results correct.
import { setTimeout as pause } from "node:timers/promises";
import { claimJob, heartbeat, pushLog, report } from "./api.ts";
import { type Claim, openHistory, type ReportVerb } from "./history.ts";
import { type Connection, connect } from "./http.ts";
import { seededRandom } from "./random.ts";

export interface WorkerSettings {
  url: string;
  name: string;
  history: string;
  seed: number;
  slots: number;
  ttlSecs: number;
  /** Seconds that a claim may wait for work. */
  waitSecs: number;
  /** How long a job takes, at least and at most. */
  workMs: [number, number];
  /** The share of jobs that fail and may be retried. */
  failRate: number;
  /** The share of jobs that send no heartbeat and take longer than their term. */
  dozeRate: number;
  /** The share of claims that disconnect before the response. */
  hangUpRate?: number;
  /** The share of reports that are sent twice at once. */
  repeatRate?: number;
  /** The share of jobs that write a line to their log. */
  logRate?: number;
}

/** The short pause of a worker when the server is down or has no job, because these tests have little time. */
const IDLE_MS = 25;
/** How long a report is sent again while there is no answer: longer than any restart of the server. */
const REPORT_PATIENCE_MS = 20_000;

/** Resolves when the signal is aborted and all its jobs have been reported. */
export async function runWorker(settings: WorkerSettings, signal: AbortSignal, open: typeof connect = connect): Promise<void> {
  const history = openHistory(settings.history);
  // For each slot: two connections for claims and reports, two for heartbeats and logs. So none waits for another.
  const connection = open(settings.url, 2 * settings.slots);
  const beats = open(settings.url, 2 * settings.slots);
  const random = seededRandom(settings.seed);
  let claims = 0;

  const claimOne = async (): Promise<Claim | null> => {
    const claim = claims++;
    const { name: workerId, ttlSecs, waitSecs, hangUpRate = 0 } = settings;
    const signal = random.chance(hangUpRate) ? AbortSignal.timeout(random.between(0, waitSecs * 1000)) : undefined;
    history.write({ kind: "claim-sent", claim });
    try {
      const got = await claimJob(connection, { workerId, ttlSecs, waitSecs, signal });
      history.write(got ? { kind: "claim-got", claim, ...got } : { kind: "claim-empty", claim });
      return got;
    } catch (error) {
      history.write({ kind: "claim-unanswered", claim, why: String(error) });
      return null;
    }
  };

  const beatUntil = async (claim: Claim, over: AbortSignal): Promise<void> => {
    for (let beat = 0; !over.aborted; beat++) {
      await pause(claim.ttlMs / 3, undefined, { signal: over }).catch(ignoreAbort);
      if (over.aborted) return;
      history.write({ kind: "heartbeat-sent", leaseId: claim.leaseId, beat });
      // A missing response changes nothing: the next heartbeat is still due.
      const answer = await heartbeat(beats, claim.leaseId).catch(() => null);
      if (answer) history.write({ kind: "heartbeat-got", leaseId: claim.leaseId, beat, ...answer });
    }
  };

  /** Repeated unchanged until it gets a response. */
  const log = async (claim: Claim): Promise<void> => {
    const { leaseId, runId } = claim;
    const line = `line of ${leaseId}\n`;
    const patienceEnds = Date.now() + REPORT_PATIENCE_MS;
    const sendOnce = async (): Promise<boolean> => {
      history.write({ kind: "log-sent", leaseId, runId, line });
      const status = await pushLog(beats, claim, 0, line).catch(() => undefined);
      if (status !== undefined) history.write({ kind: "log-got", leaseId, runId, line, status });
      return status !== undefined;
    };
    while (Date.now() < patienceEnds) {
      const twice = random.chance(settings.repeatRate ?? 0);
      const answered = await Promise.all(twice ? [sendOnce(), sendOnce()] : [sendOnce()]);
      if (answered.includes(true)) return;
      await pause(IDLE_MS);
    }
  };

  /** True when it was answered. */
  const tellOnce = async ({ leaseId }: Claim, verb: ReportVerb): Promise<boolean> => {
    const token = `done by ${leaseId}`;
    history.write({ kind: "report-sent", leaseId, verb, token: verb === "complete" ? token : undefined });
    try {
      history.write({ kind: "report-got", leaseId, verb, status: await report(connection, leaseId, verb, token) });
      return true;
    } catch (error) {
      history.write({ kind: "report-unanswered", leaseId, verb, why: String(error) });
      return false;
    }
  };

  const tell = async (claim: Claim, verb: ReportVerb): Promise<void> => {
    const patienceEnds = Date.now() + REPORT_PATIENCE_MS;
    while (Date.now() < patienceEnds) {
      const twice = random.chance(settings.repeatRate ?? 0);
      const answered = await Promise.all(twice ? [tellOnce(claim, verb), tellOnce(claim, verb)] : [tellOnce(claim, verb)]);
      if (answered.includes(true)) return;
      await pause(IDLE_MS);
    }
  };

  const work = async (claim: Claim): Promise<void> => {
    const dozes = random.chance(settings.dozeRate);
    const [least, most] = settings.workMs;
    const workMs = random.between(least, most) + (dozes ? claim.ttlMs : 0);
    const verb: ReportVerb = random.chance(settings.failRate) ? "fail" : "complete";
    history.write({ kind: "handler-started", leaseId: claim.leaseId });
    const over = new AbortController();
    const beating = dozes || workMs < claim.ttlMs / 3 ? undefined : beatUntil(claim, over.signal);
    const logging = random.chance(settings.logRate ?? 0) ? log(claim) : undefined;
    if (workMs > 0) await pause(workMs);
    await tell(claim, verb);
    await logging;
    over.abort();
    await beating;
  };

  const slot = async (): Promise<void> => {
    while (!signal.aborted) {
      const claim = await claimOne();
      if (claim) await work(claim);
      else await pause(IDLE_MS);
    }
  };

  await Promise.all(Array.from({ length: settings.slots }, slot));
  close(connection, beats);
  history.close();
}

function close(...connections: Connection[]): void {
  for (const connection of connections) connection.close();
}

/** The pause was cut short because the job is over, which the caller notices itself. */
function ignoreAbort(): void {}
