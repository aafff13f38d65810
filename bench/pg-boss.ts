// pg-boss by its functions for one's own worker. What was sent is fetched at once, up to c jobs together, and each is completed with its
// output. Its own worker asks twice a second at most, so a caller who waits would measure that.
import PgBoss from "pg-boss";
import type { Input, Output } from "./closed-loop.ts";
import type { OpenPeer } from "./graphile.ts";

const QUEUE = "noop";

export async function openPgBoss(url: string, slots: number, handler: (input: Input) => Output): Promise<OpenPeer> {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  let failure: unknown;
  boss.on("error", (error) => {
    failure = error;
  });
  await boss.start();
  await boss.createQueue(QUEUE);
  const waiting = new Map<number, { readonly resolve: (output: Output) => void; readonly reject: (error: unknown) => void }>();
  let sent = 0;
  let isFetching = false;

  const perform = async (id: string, input: Input): Promise<void> => {
    const caller = waiting.get(input.sequence);
    waiting.delete(input.sequence);
    try {
      const output = handler(input);
      await boss.complete(QUEUE, id, output);
      caller?.resolve(output);
    } catch (error) {
      caller?.reject(error);
    }
  };
  // A batch is processed while the next one is fetched.
  const fetchAll = async (): Promise<void> => {
    if (isFetching) return;
    isFetching = true;
    try {
      while (sent > 0) {
        const jobs = await boss.fetch<Input>(QUEUE, { batchSize: slots });
        sent -= jobs.length;
        for (const { id, data } of jobs) void perform(id, data);
      }
    } finally {
      isFetching = false;
    }
  };
  return {
    submit: (input) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) reject(failure);
        waiting.set(input.sequence, { resolve, reject });
        boss
          .send(QUEUE, input)
          .then(() => {
            sent++;
            return fetchAll();
          })
          .catch(reject);
      }),
    close: () => boss.stop({ graceful: false, wait: true }),
  };
}
