// A failure that already has its name on the wire.

import { LongshoreError } from "../../../core/errors.ts";

export class RunFailed extends LongshoreError {
  override readonly name: string = "RunFailed";
  readonly reason: string;
  readonly permanent: boolean;

  constructor(reason: string, permanent: boolean, message: string, cause?: unknown) {
    super("LONGSHORE_TASK_FAILED", message, { cause });
    this.reason = reason;
    this.permanent = permanent;
  }
}

/** The result of a batch is refused, so the batch has failed. */
export class RefusedResult extends RunFailed {
  override readonly name = "RefusedResult";
}
