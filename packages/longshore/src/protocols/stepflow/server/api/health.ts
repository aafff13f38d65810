// HealthService in the reference's form. Its `build` describes a Rust program; it is filled with values of this program.

import type { Clock } from "../../../../core/clock.ts";

export interface Health {
  readonly status: "healthy";
  readonly timestamp: number;
  readonly build: {
    readonly gitVersion: string;
    readonly dirty: boolean;
    readonly rustcVersion: string;
    readonly profile: string;
    readonly features: string[];
    readonly target: string;
  };
}

/** A server that answers is healthy. /health/ready and the doctor report problems of its store or its workers. */
export function healthOf({ clock, version }: { readonly clock: Clock; readonly version: string }): Health {
  const build = {
    gitVersion: `longshore-${version}`,
    dirty: false,
    rustcVersion: "",
    profile: "release",
    features: ["grpc", "nats", "http"],
    target: `node-${process.platform}-${process.arch}`,
  };
  return { status: "healthy", timestamp: clock.now(), build };
}
