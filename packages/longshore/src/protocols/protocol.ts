// The interface of a protocol. Each protocol's folder exports one value of this type, and index.ts lists these values. Such a value must be
// cheap to load: code that takes memory or time is loaded by a function.

import type { ReadAddress } from "../core/recording.ts";
import type { HintOptions, ProtocolHints } from "./hints.ts";
import type { DefinitionFormat, FileDescription, PreparedProtocol, Preparing, Reservation } from "./server-half.ts";
import type { WorkerProtocol } from "./worker-half.ts";

/** The type for a protocol that adds no fields. */
export type NoFields = Record<never, unknown>;

/**
 * `Options` are the fields that it adds to the options of `serve()`. `Handle` are those that it adds to the server that `serve()` returns.
 */
export interface Protocol<Options extends object = object, Handle extends object = object> {
  readonly name: string;
  /** Reads its configuration before the server opens anything: a mistake must not leave a server half started. */
  prepare(options: Options, around: Preparing): Promise<PreparedProtocol<Handle>>;
  /** Files of the protocol that no definition may read. */
  secretPaths?(options: Options): readonly string[];
  /** Lanes that are not for workers of other protocols. */
  readonly reserved?: readonly Reservation[];
  /** The protocol's format of definition files. */
  readonly format?: FileDescription & { load(): Promise<DefinitionFormat> };
  /** The protocol's options of the commands that start a server. */
  readonly flags?: ServerFlags<Options>;
  /** The protocol's ways to get tasks in `longshore work`. */
  readonly workers?: readonly WorkerProtocol[];
  /** For `longshore verify`: the row to which the ids of this protocol belong. Default: the row of the lease. */
  readonly recordedAddress?: ReadAddress;
  /** The hints that `longshore dev` prints about its workers. */
  hints?(options: HintOptions): Promise<ProtocolHints>;
}

export interface ServerFlags<Options extends object> {
  readonly list: readonly ServerFlag[];
  /** Converts flags to options of `serve()`. `values` has the given flags, by their names in camel case. */
  options(values: FlagValues, around: FlagReading): Options;
  /** Files with secrets among the values. */
  secretFiles?(values: FlagValues): readonly string[];
}

export interface ServerFlag {
  /** As the command line shows it, such as `--stepflow-config <file>`. */
  readonly flag: string;
  readonly description: string;
  /** True when its value is a list with commas. */
  readonly isList?: true;
  /** The name, in camel case, of a flag that cannot be used together with it. */
  readonly conflicts?: string;
  /** The flag's environment variable. Default: `LONGSHORE_` and the flag's name, such as `LONGSHORE_STEPFLOW_CONFIG`. */
  readonly variable?: string;
  /** True when its value is not printed. */
  readonly isSecret?: true;
}

export type FlagValues = { readonly [name: string]: unknown };

export interface FlagReading {
  /** Returns whether a value, by its name in camel case, is among the arguments of the process. */
  isTyped(name: string): boolean;
  /** Warns about a flag, in the form of the log. */
  warn(message: string): void;
  /** The content of a file that a flag names. */
  read(flag: string, file: string): string;
  /** Creates the error of a command that cannot run. */
  failure(message: string): Error;
}
