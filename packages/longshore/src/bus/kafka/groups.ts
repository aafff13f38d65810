// How many members a consumer group has now, whoever they are. Asked rarely, so a connection of its own for each question costs nothing that lasts.

import { clientOptions, hangUp, type KafkaModule, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

/** Many may ask at once about one group: they share an answer, and one that is this old is asked for again. */
const answerMsMax = 1_000;

export class KafkaGroups {
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #closing: AbortSignal;
  readonly #asked = new Map<string, Promise<number>>();

  constructor(kafka: KafkaModule, options: KafkaBusOptions, closing: AbortSignal) {
    this.#kafka = kafka;
    this.#options = options;
    this.#closing = closing;
  }

  members(group: string): Promise<number> {
    const asked = this.#asked.get(group);
    if (asked !== undefined) return asked;
    const asking = this.#ask(group);
    this.#asked.set(group, asking);
    const forget = () => {
      setTimeout(() => this.#asked.delete(group), answerMsMax).unref();
    };
    asking.then(forget, forget);
    return asking;
  }

  async #ask(group: string): Promise<number> {
    const admin = new this.#kafka.Admin(clientOptions(this.#options));
    try {
      const groups = await within(requestMsMax, admin.describeGroups({ groups: [group] }), this.#closing);
      return groups.get(group)?.members.size ?? 0;
    } finally {
      await hangUp(admin);
    }
  }
}
