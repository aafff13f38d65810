// Reads what strace wrote about the thread that both writes the store and answers requests.

export interface Answered {
  status: number;
  /** Syncs of the write-ahead log since the previous answer. */
  syncs: number;
  /** Whether the answer left before everything written to that log was synced. */
  unsynced: boolean;
}

/** Reads the trace of a server that got one request after the other. */
export function readTrace(text: string): Answered[] {
  const answers: Answered[] = [];
  let syncs = 0;
  let unsynced = false;
  for (const line of text.split("\n")) {
    const status = /^(?:write|writev|sendto|sendmsg)\(\d+<(?:TCP|socket).*"HTTP\/1\.1 (\d+) /.exec(line)?.[1];
    if (/^pwrite(?:64|v)\(\d+<[^>]*-wal>/.test(line)) unsynced = true;
    else if (/^(?:fdatasync|fsync)\(\d+<[^>]*-wal>\) += 0/.test(line)) {
      unsynced = false;
      syncs++;
    } else if (status) {
      answers.push({ status: Number(status), syncs, unsynced });
      syncs = 0;
    }
  }
  return answers;
}
