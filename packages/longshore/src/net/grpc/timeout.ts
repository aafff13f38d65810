// The header `grpc-timeout`: at most eight digits and a unit.
import { GrpcCode, GrpcError } from "./status.ts";

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
/** Eight digits. */
const valueMax = 99_999_999;

/** In milliseconds; undefined when the caller waits without a limit. @throws GrpcError for an invalid value. */
export function parseTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,8})([HMSmun])$/.exec(text);
  if (match === null) {
    throw new GrpcError(
      GrpcCode.INVALID_ARGUMENT,
      `grpc-timeout is ${JSON.stringify(text)}, expected up to 8 digits and one of H M S m u n.`,
    );
  }
  return Number(match[1]) * (unitMs[match[2] as string] as number);
}

/** In milliseconds, or in seconds when the milliseconds have more than eight digits. Rounded down. */
export function formatTimeout(ms: number): string {
  const whole = Math.max(0, Math.floor(ms));
  if (whole <= valueMax) return `${whole}m`;
  return `${Math.min(Math.floor(whole / 1_000), valueMax)}S`;
}
