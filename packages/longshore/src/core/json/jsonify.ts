// The type of a value after it was written as JSON and read again (`toJson` does so with values). What a task, a workflow or a side effect
// returns is stored as JSON, so its callers get this type.

import type { Json } from "./json.ts";

/** A value that an object in JSON leaves out, and that is null elsewhere. */
type LeftOut = undefined | symbol | ((...args: never) => unknown);

/**
 * The type of a value that has been stored as JSON: a `Date` becomes a string, a `Map` an object, a `Set` a list, bytes a string in base64,
 * `undefined` null. Objects lose their methods.
 */
export type Jsonify<T> = 0 extends 1 & T ? T : unknown extends T ? T : [T] extends [Json] ? T : JsonForm<T>;

type JsonForm<T> = T extends string | number | boolean | null
  ? T
  : T extends LeftOut
    ? null
    : T extends bigint
      ? never
      : T extends Uint8Array
        ? string
        : T extends { toJSON(key: string): infer Form }
          ? Jsonify<Form>
          : T extends ReadonlyMap<string, infer Value>
            ? { [key: string]: Jsonify<Value> }
            : T extends ReadonlySet<infer Item>
              ? Jsonify<Item>[]
              : T extends readonly unknown[]
                ? { [At in keyof T]: Jsonify<T[At]> }
                : T extends object
                  ? { [Key in keyof T as IsLeftOut<Key, T[Key]> extends true ? never : Key]: FieldForm<T[Key]> }
                  : T;

type IsLeftOut<Key, Value> = Key extends symbol ? true : [Value] extends [LeftOut] ? true : false;
type FieldForm<Value> = Value extends LeftOut ? undefined : Jsonify<Value>;
