// Reads the beginning of a BATCH_OK, which names the batch before its metrics. A coordinator that already has the batch does not need its
// metrics, and parsing them is most of the cost of an event.

export interface BatchHead {
  readonly task_id: string;
  readonly node_id: string;
  readonly step_type: string;
  readonly attempt_epoch: number;
  readonly worker_id: string;
  readonly batch_uid: string;
}

/** The metrics begin before this position, except with very long names. */
const headBytesMax = 1_024;
/** Characters that JSON writes unchanged, as one byte each. */
const plain = "[ !#-[\\]-~]";
const name = `"(${plain}+)"`;
const head = new RegExp(
  `^{"v":1,"msg_type":"event","role":"worker","corr_id":"${plain}*","dedup_id":"${plain}*","task_id":${name},"node_id":${name},` +
    `"step_type":${name},"attempt_epoch":(\\d{1,15}),"ts_ms":\\d{1,15},` +
    `"payload":{"kind":"BATCH_OK","worker_id":${name},"batch_uid":${name},"metrics":{`,
);

/** Null for a record whose form or order of fields is not that of the reference, and for names that are not plain ASCII. */
export function readBatchHead(bytes: Uint8Array): BatchHead | null {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, headBytesMax)).toString("latin1");
  const found = head.exec(text);
  if (found === null) return null;
  const [, task_id = "", node_id = "", step_type = "", epoch = "", worker_id = "", batch_uid = ""] = found;
  return { task_id, node_id, step_type, attempt_epoch: Number(epoch), worker_id, batch_uid };
}
