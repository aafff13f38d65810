// The embedded bus over HTTP. A member is a client that polls under a name. When it leaves, is silent for a while, or does not get a
// response, other members get its records.

import {
  memberMs,
  publishBodyBytesMax,
  publishPath,
  readPublish,
  readTake,
  type TakeAnswer,
  type TakeRequest,
  takeAnswerBody,
  takePath,
} from "../../../bus/http-wire.ts";
import type { Caller } from "../../../core/actions.ts";
import type { BusLog, Taken } from "../../../core/bus/log.ts";
import type { Clock } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { HttpReply, HttpRequest, Route } from "../../../net/http/http.ts";
import { httpBase, type TopicNames, topicNamesDefault } from "../wire/shapes.ts";
import { checkTopics } from "./topic-rules.ts";

export interface BusRoutesDeps {
  readonly busLog: BusLog;
  readonly clock: Clock;
  /**
   * The address where workers must connect when the coordinator does not use the embedded bus. It would not notice a worker that connects
   * here.
   */
  readonly busElsewhere?: string | undefined;
  /** The topic names of this server. */
  readonly topics?: TopicNames | undefined;
}

export interface BusRoutes {
  readonly routes: readonly Route[];
  /** Answers all waiting polls. */
  dismiss(): void;
}

interface Member {
  readonly joined: Set<string>;
  /** Takes that were sent to it and are not acknowledged. */
  readonly out: Set<number>;
  /** The requests in progress of the member. */
  openTakes: number;
  seenAt: number;
}

/** Maximum number of members: far more than one server can serve. Each costs a few hundred bytes. */
const membersMax = 10_000;
/** Maximum number of topics of all members together, because each is a stored name. Most members have three. */
const joinedMax = 200_000;
/** Maximum number of unacknowledged takes of one member: as many as it can name in one request. Most members have one. */
const outMax = 1_000;
/**
 * Maximum number of topics that all waiting takes watch together, because each record wakes the takes of its topic. Most takes have one to
 * three topics.
 */
const watchedMax = 100_000;

const jsonHeaders = { "content-type": "application/json" };
const nothing: TakeAnswer = { taken: null, records: [] };

export function busRoutes(deps: BusRoutesDeps): BusRoutes {
  const members = new Members(deps);
  const { topics = topicNamesDefault } = deps;
  const refuseStrays = () => {
    if (deps.busElsewhere === undefined) return;
    const message = `The coordinator of this server talks to FlowKit's workers through ${deps.busElsewhere}: give the worker these brokers, in addition to this address.`;
    throw new LongshoreError("LONGSHORE_NOT_FOUND", message);
  };
  const publish = async (request: HttpRequest): Promise<HttpReply> => {
    refuseStrays();
    const records = readPublish(request.text);
    checkTopics(request.caller, "publish", new Set(records.map(({ topic }) => topic)), topics);
    await deps.busLog.append(records, "guest");
    return { status: 200, headers: jsonHeaders, body: "{}" };
  };
  const take = async (request: HttpRequest): Promise<HttpReply> => {
    refuseStrays();
    const takeRequest = readTake(request.text);
    checkTopics(request.caller, "take", takeRequest.topics, topics);
    return members.take({ ...takeRequest, member: memberOf(request.caller, takeRequest.member) }, request.gone);
  };
  return {
    routes: [
      {
        method: "POST",
        path: `${httpBase}/bus${publishPath}`,
        action: "bus.publish",
        body: "text",
        bodyMax: publishBodyBytesMax,
        takesLarge: true,
        handle: publish,
      },
      { method: "POST", path: `${httpBase}/bus${takePath}`, action: "bus.take", body: "text", handle: take },
    ],
    dismiss: () => members.dismiss(),
  };
}

class Members {
  readonly #log: BusLog;
  readonly #clock: Clock;
  readonly #members = new Map<string, Member>();
  /** The functions that answer waiting takes, oldest first. */
  readonly #waiting = new Set<() => void>();
  /** Topics of all waiting takes. */
  #watched = 0;
  /** Topics of all members. */
  #joined = 0;
  #sweeping = false;
  #dismissed = false;

  constructor({ busLog, clock }: BusRoutesDeps) {
    this.#log = busLog;
    this.#clock = clock;
  }

  async take(takeRequest: TakeRequest, gone: AbortSignal): Promise<HttpReply> {
    const member = this.#touch(takeRequest.member);
    member.openTakes++;
    try {
      await this.#settle(member, takeRequest);
      if (takeRequest.leave) this.#forget(takeRequest.member);
      const wants = !takeRequest.leave && takeRequest.max > 0;
      if (wants && member.out.size >= outMax) {
        throw new LongshoreError("LONGSHORE_LIMIT", `The member has ${outMax} takes that it has not committed, which is the limit.`);
      }
      const taken = wants ? await this.#next(takeRequest, gone) : null;
      if (taken === null) return replyOf(nothing);
      member.out.add(taken.id);
      return {
        ...replyOf({ taken: taken.id, records: taken.records }),
        undelivered: () => this.#giveBack(takeRequest.member, member, taken.id),
      };
    } finally {
      member.openTakes--;
      member.seenAt = this.#clock.now();
    }
  }

  dismiss(): void {
    this.#dismissed = true;
    for (const answer of [...this.#waiting]) answer();
  }

  /** Joins topics, commits, and returns records that were lost on their way to the member. */
  async #settle(member: Member, { group, member: name, topics, from, commit, holding }: TakeRequest): Promise<void> {
    const fresh = topics.filter((topic) => !member.joined.has(topic));
    if (fresh.length > 0) {
      if (this.#joined + fresh.length > joinedMax) {
        throw new LongshoreError("LONGSHORE_LIMIT", `The members of the bus have joined ${joinedMax} topics together, which is the limit.`);
      }
      await this.#log.join(group, fresh, from, "guest");
      this.#remember(name, member, fresh);
    }
    await Promise.all(commit.map((id) => this.#log.commit(name, id)));
    for (const id of commit) member.out.delete(id);
    if (holding === undefined) return;
    const kept = new Set(holding);
    for (const id of member.out) if (!kept.has(id)) this.#giveBack(name, member, id);
  }

  async #next(takeRequest: TakeRequest, gone: AbortSignal): Promise<Taken | null> {
    const until = this.#clock.now() + takeRequest.waitMs;
    for (;;) {
      if (gone.aborted || this.#dismissed) return null;
      // The topics are watched during the take, so that no record in between is missed.
      let isNew = false;
      const unwatch = this.#log.watch(takeRequest.topics, () => {
        isNew = true;
      });
      const taken = await this.#log.take(takeRequest).finally(unwatch);
      if (taken !== null || this.#clock.now() >= until) return taken;
      if (!isNew && !(await this.#changed(takeRequest.topics, until, gone))) return null;
    }
  }

  /** Returns false when it must make room for other waiting takes: its member polls again. */
  #changed(topics: readonly string[], until: number, gone: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const over = (mayGoOn: boolean) => {
        unwatch();
        cancel();
        gone.removeEventListener("abort", changed);
        this.#waiting.delete(dismissed);
        this.#watched -= topics.length;
        resolve(mayGoOn);
      };
      const changed = () => over(true);
      const dismissed = () => over(false);
      const unwatch = this.#log.watch(topics, changed);
      const cancel = this.#clock.at(until, changed);
      gone.addEventListener("abort", changed, { once: true });
      this.#waiting.add(dismissed);
      this.#watched += topics.length;
      this.#makeRoom();
    });
  }

  /** Answers the takes that have waited longest, so that no caller keeps others from waiting. */
  #makeRoom(): void {
    for (const dismiss of this.#waiting) {
      if (this.#watched <= watchedMax) return;
      dismiss();
    }
  }

  #touch(name: string): Member {
    const known = this.#members.get(name);
    if (known === undefined && this.#members.size >= membersMax) {
      throw new LongshoreError("LONGSHORE_LIMIT", `The bus has ${membersMax} members already, which is the limit.`);
    }
    const member = known ?? { joined: new Set(), out: new Set(), openTakes: 0, seenAt: 0 };
    member.seenAt = this.#clock.now();
    this.#members.set(name, member);
    this.#sweepLater();
    return member;
  }

  #giveBack(name: string, member: Member, id: number): void {
    member.out.delete(id);
    this.#log.release(name, id);
  }

  #remember(name: string, member: Member, topics: readonly string[]): void {
    // The member may have left meanwhile.
    if (this.#members.get(name) !== member) return;
    this.#joined -= member.joined.size;
    for (const topic of topics) member.joined.add(topic);
    this.#joined += member.joined.size;
  }

  #forget(name: string): void {
    this.#joined -= this.#members.get(name)?.joined.size ?? 0;
    this.#members.delete(name);
    this.#log.release(name);
  }

  /** One timer for all members, and none without members. */
  #sweepLater(): void {
    if (this.#sweeping || this.#members.size === 0) return;
    this.#sweeping = true;
    this.#clock.at(this.#clock.now() + memberMs / 2, () => {
      this.#sweeping = false;
      const before = this.#clock.now() - memberMs;
      for (const [name, member] of this.#members) if (member.openTakes === 0 && member.seenAt < before) this.#forget(name);
      this.#sweepLater();
    });
  }
}

/**
 * The internal name of a member. A member owns its records until it acknowledges them. So the name contains the token: no caller may act
 * for a member of another token. The coordinator's own members have names without a space.
 */
function memberOf({ name = "" }: Caller, member: string): string {
  return `${name} ${member}`;
}

function replyOf(answer: TakeAnswer): HttpReply {
  return { status: 200, headers: jsonHeaders, body: takeAnswerBody(answer) };
}
