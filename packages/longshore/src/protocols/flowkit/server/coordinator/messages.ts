// The messages that a coordinator sends, as records of its outbox.

import { randomUUID } from "node:crypto";
import type { JsonObject } from "../../../../core/json/json.ts";
import type { NodeIo } from "../../dialect/graph.ts";
import { dedupIds } from "../../wire/hash.ts";
import { commandTopic, encodeEnvelope, nodeKey, payloadOf, type TopicNames } from "../../wire/shapes.ts";
import type { OutgoingMessage } from "./parts.ts";

/** An attempt, and the role that runs it. */
export interface WireAttempt {
  readonly task_id: string;
  readonly node_id: string;
  readonly step_type: string;
  readonly attempt_epoch: number;
}

export interface Start {
  readonly input: Pick<NodeIo, "input_ref" | "input_inline" | "batching">;
  /** The uids of batches that the worker skips. */
  readonly deadLetters: readonly string[];
  /** How often this command was sent before without a claim by a worker. */
  readonly retry: number;
}

export function startMessage(topics: TopicNames, attempt: WireAttempt, { input, deadLetters, retry }: Start, now: number): OutgoingMessage {
  const command = { cmd: "TASK_START" as const, ...input, cancel_token: randomUUID() };
  const payload: JsonObject = deadLetters.length === 0 ? { ...command } : { ...command, dead_letters: [...deadLetters] };
  const dedupId = dedupIds.start(attempt);
  const value = encodeEnvelope({ ...envelope(attempt, now), msg_type: "cmd", dedup_id: dedupId, payload, target_worker_id: null });
  return { topic: commandTopic(topics, attempt.step_type), key: nodeKey(attempt.task_id, attempt.node_id), dedupId, value, retry };
}

export function cancelMessage(
  topics: TopicNames,
  attempt: WireAttempt,
  worker: string,
  { reason, deadlineMs }: { reason: string; deadlineMs: number },
  now: number,
): OutgoingMessage {
  const payload = payloadOf({ sig: "CANCEL", reason, cancel_token: null, deadline_ts_ms: deadlineMs });
  const dedupId = dedupIds.cancelSignal(attempt, worker);
  const value = encodeEnvelope({ ...envelope(attempt, now), msg_type: "event", dedup_id: dedupId, payload, target_worker_id: worker });
  return { topic: topics.signals, key: worker, dedupId, value };
}

export function discoverMessage(topics: TopicNames, attempt: WireAttempt, now: number): OutgoingMessage {
  const payload = payloadOf({ query: "TASK_DISCOVER", want_epoch: attempt.attempt_epoch });
  const dedupId = dedupIds.discover(attempt);
  const value = encodeEnvelope({ ...envelope(attempt, now), msg_type: "query", dedup_id: dedupId, payload, target_worker_id: null });
  return { topic: topics.query, key: attempt.task_id, dedupId, value };
}

function envelope({ task_id, node_id, step_type, attempt_epoch }: WireAttempt, now: number) {
  return { role: "coordinator" as const, corr_id: randomUUID(), task_id, node_id, step_type, attempt_epoch, ts_ms: now };
}
