// Reads the parts of another node for an ordinary task.

import type { StepPart } from "../../../core/context.ts";
import type { PartReader } from "../../../runner/transport.ts";
import type { UpstreamPart } from "../wire/artifacts/artifacts.ts";

/** Opened with the first read, whose signal ends it. */
export function partReader(open: (signal: AbortSignal) => AsyncIterable<UpstreamPart>): PartReader {
  let parts: AsyncIterator<UpstreamPart> | undefined;
  return {
    async next(signal): Promise<readonly StepPart[] | undefined> {
      parts ??= open(signal)[Symbol.asyncIterator]();
      const { done, value } = await parts.next();
      return done === true ? undefined : [{ uid: value.uid, value: value.meta }];
    },
  };
}
