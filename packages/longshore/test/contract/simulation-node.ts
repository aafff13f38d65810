// A node between workers and the owner. Its claims reach the owner as requests, which the real performer performs (cluster/performer.ts).
// The link breaks before the reply, or between the reply and the worker. It also breaks before the owner is notified that the worker has
// the task.

import type { CarriedReply } from "../../src/cluster/carried-reply.ts";
import type { CarriedRequest } from "../../src/cluster/carried-request.ts";
import { Performer } from "../../src/cluster/performer.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { RequestIds } from "../../src/core/request-ids.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { HttpReply, RouteGroup } from "../../src/net/http/http.ts";
import type { Machine, Process } from "./simulation-process.ts";
import { turns } from "./world.ts";

export interface NodeClaim {
  readonly reach: { names: string[]; labels: string[] };
  readonly holder: string;
  readonly termMs: number;
  readonly max: number;
}

/** What happens to a claim between the worker and the owner. */
const fates = [
  "the link breaks while the claim is performed",
  "the link breaks before the reply",
  "the worker is gone",
  "the link breaks before the confirmation",
  "the link breaks before the confirmation, which is sent again",
  "confirmed",
] as const;

interface Owner {
  readonly performer: Performer;
  /** The tasks that were handed out, by the text of the reply. */
  readonly replies: Map<string, readonly TaskRow[]>;
}

export class SimulatedNode {
  readonly #machine: Machine;
  readonly #owners = new WeakMap<Process, Owner>();

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** The tasks that the worker gets. */
  async claim(process: Process, claim: NodeClaim): Promise<readonly TaskRow[]> {
    const { random, say, makeId, clock } = this.#machine;
    const owner = this.#ownerOf(process);
    const fate = random.pick(fates) as (typeof fates)[number];
    const id = makeId(clock.now());
    say(`  claim ${id}: ${fate}`);
    const request: CarriedRequest = {
      ...{ route: "POST /claim", path: "/claim", params: {}, query: "", headers: {}, text: JSON.stringify(claim), id },
      caller: { scopes: ["worker"] },
    };
    const link = { isOver: false };
    const asked = ask(owner, request, link, false);
    if (fate === "the link breaks while the claim is performed") {
      asked.catch(() => {});
      await turns(random.between(0, 4));
      this.#breaks(owner, link, id);
      return ask(owner, request, { isOver: false }, true);
    }
    const tasks = await asked;
    if (fate === "the link breaks before the reply") {
      this.#breaks(owner, link, id);
      return ask(owner, request, { isOver: false }, true);
    }
    if (fate === "the worker is gone") {
      await confirm(owner, { undelivered: [id] });
      return [];
    }
    void this.#later(async () => {
      if (fate !== "confirmed") this.#breaks(owner, link, id);
      if (fate !== "the link breaks before the confirmation") await confirm(owner, { delivered: [id] });
    });
    return tasks;
  }

  /** The owner notices that a link is over. */
  #breaks(owner: Owner, link: { isOver: boolean }, id: string): void {
    link.isOver = true;
    owner.performer.left(link);
    if (this.#machine.plant === "hand-outs that go back with their link") void confirm(owner, { undelivered: [id] });
  }

  async #later(work: () => Promise<void>): Promise<void> {
    await turns(this.#machine.random.between(1, 6));
    await work().catch(this.#machine.failed);
  }

  #ownerOf(process: Process): Owner {
    const known = this.#owners.get(process);
    if (known !== undefined) return known;
    const replies: Owner["replies"] = new Map();
    const handle = async ({ text }: { text: string }): Promise<HttpReply> => {
      const tasks = await process.board.claim(JSON.parse(text) as NodeClaim);
      const body = String(replies.size);
      replies.set(body, tasks);
      // When the store cannot be written, the hold expires.
      const giveBack = ({ id: taskId, grant }: TaskRow) => void process.board.giveBack({ taskId, grant }).catch(() => {});
      return { status: 200, body, undelivered: () => tasks.forEach(giveBack) };
    };
    const group = {
      name: "node",
      routes: [{ method: "POST", path: "/claim", action: "task.claim", body: "text", handle }],
      refuse: () => ({}),
    };
    const { clock, makeId } = this.#machine;
    const performer = new Performer({
      ...{ table: { groups: [group as unknown as RouteGroup], methods: [] }, clock, ids: new RequestIds(makeId) },
      answers: { answer: async () => null, keepAnswer: async () => {} },
      program: async () => undefined,
      isOver: () => false,
    });
    const owner: Owner = { performer, replies };
    this.#owners.set(process, owner);
    return owner;
  }
}

const signal = new AbortController().signal;

async function ask(
  { performer, replies }: Owner,
  request: CarriedRequest,
  link: { isOver: boolean },
  isRepeat: boolean,
): Promise<readonly TaskRow[]> {
  const reply = (await performer.call("request", request, { key: "", node: "node", link, isRepeat, signal })) as CarriedReply;
  const tasks = replies.get(reply.text ?? "");
  // A refusal is also a reply.
  if (tasks === undefined) throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "The owner refused the claim.");
  return tasks;
}

async function confirm({ performer }: Owner, told: { delivered?: string[]; undelivered?: string[] }): Promise<void> {
  const args = { delivered: [], undelivered: [], ...told };
  await performer.call("confirm", args, { key: "", node: "node", link: { isOver: false }, isRepeat: false, signal });
}
