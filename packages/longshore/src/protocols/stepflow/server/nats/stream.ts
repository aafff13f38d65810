// The stream of a queue, as the reference creates it. It is created at the start, so that workers that start earlier find it. An existing
// stream is used as it is, if it can carry tasks.

import { LongshoreError } from "../../../../core/errors.ts";
import type { JetStream } from "../../wire/nats/client.ts";

type JetStreamManager = Awaited<ReturnType<JetStream["jetstreamManager"]>>;

/** Values of `err_code` in answers of the NATS server. */
const streamNotFound = 10_059;
const nameInUse = 10_058;

export function subjectOf(stream: string): string {
  return `${stream}.tasks`;
}

export async function ensureStream(js: JetStream, manager: JetStreamManager, name: string): Promise<void> {
  const subject = subjectOf(name);
  try {
    const { config } = await manager.streams.info(name);
    if (config.retention === js.RetentionPolicy.Workqueue && config.subjects?.includes(subject)) return;
    const expected = `retention workqueue and the subject ${subject}`;
    const message = `The stream ${name} has retention ${config.retention} and the subjects ${config.subjects?.join(", ")}, expected ${expected}. Remove it, or give the plugin another.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "stream", expected } });
  } catch (error) {
    if ((error as { code?: unknown }).code !== streamNotFound) throw error;
  }
  try {
    await manager.streams.add({ name, subjects: [subject], retention: js.RetentionPolicy.Workqueue });
  } catch (error) {
    // Another orchestrator has created it meanwhile.
    if ((error as { code?: unknown }).code !== nameInUse) throw error;
  }
}
